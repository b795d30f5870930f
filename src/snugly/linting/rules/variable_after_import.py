"""SNG422: an environment variable is set after TensorFlow was imported."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from snugly.linting.order import Event, events, follows
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.findings import Severity
    from snugly.linting.program import Program

_READ_EARLY: Final = re.compile(
    r"(TF|CUDA|XLA|KERAS|ONEDNN|NCCL|ROCR|HIP|MIOPEN|GRPC|AUTOGRAPH)_\w+"
)
_READ_LATE: Final = frozenset({"TF_CONFIG", "KERAS_HOME", "TF_KERAS"})
"""TF_CONFIG is read when a distribution strategy is made."""
_AT_FIRST_USE: Final = frozenset(
    {
        *("CUDA_VISIBLE_DEVICES", "TF_GPU_ALLOCATOR", "TF_FORCE_GPU_ALLOW_GROWTH"),
        *("CUDA_DEVICE_ORDER", "TF_GPU_HOST_MEM_LIMIT_IN_MB"),
    }
)
"""Read when the GPU is first used: after the import they work until then, and only then."""


def check(program: Program) -> Iterator[Alarm]:
    """`os.environ['TF_…'] = …` behind `import tensorflow`."""
    imported: dict[str, Event] = {}
    told: set[ast.AST] = set()
    for event in events(program, program.tree, lambda node: _classify(program, node)):
        if event.kind != "variable":
            imported.setdefault(event.kind, event)
            continue
        if event.node in told:
            continue
        told.add(event.node)
        for name in _set_variables(program, event.node):
            reader = imported.get("keras")
            if not name.startswith("KERAS_"):  # Keras's own are read by Keras alone
                reader = imported.get("tensorflow") or reader
            if reader is not None and follows(program, reader, event):
                yield _alarm(event.node, name, reader.node)


def _alarm(node: ast.AST, name: str, imported: ast.AST) -> Alarm:
    line = getattr(imported, "lineno", "?")
    severity: Severity | None = None
    if name in _AT_FIRST_USE:
        severity = "warning"
        said = (
            f"{name} is set after TensorFlow was imported (line {line}): it counts only if nothing"
            " has used the GPU before"
        )
    else:
        said = (
            f"{name} is set after TensorFlow was imported (line {line}), which has read it by then"
        )
    return Alarm(node, said, severity=severity)


def _classify(program: Program, node: ast.AST) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        if isinstance(node, ast.ImportFrom) and node.module == "tensorflow":
            names += [f"tensorflow.{alias.name}" for alias in node.names]
        tops = {name.partition(".")[0] for name in names}
        if tops & {"keras", "tf_keras"} or any("tensorflow.keras" in one for one in names):
            return "keras"
        return "tensorflow" if "tensorflow" in tops else None
    return "variable" if _set_variables(program, node) else None


def _set_variables(program: Program, node: ast.AST) -> list[str]:
    names: list[str] = []
    if isinstance(node, ast.Assign):
        names += [
            _text(target.slice)
            for target in node.targets
            if isinstance(target, ast.Subscript) and _is_environment(program, target.value)
        ]
    elif isinstance(node, ast.Call):
        called = program.name_of_call(node) or ""
        if called in {"os.putenv", "os.environ.setdefault"} and node.args:
            names.append(_text(node.args[0]))
        elif called == "os.environ.update":
            names += [one.arg for one in node.keywords if one.arg]
            for given in node.args:
                if isinstance(given, ast.Dict):
                    names += [_text(key) for key in given.keys if key is not None]
    return [name for name in names if _READ_EARLY.fullmatch(name) and name not in _READ_LATE]


def _is_environment(program: Program, node: ast.expr) -> bool:
    return program.resolve(node) == "os.environ"


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


RULE = Rule(
    code="SNG422",
    name="env-var-set-after-import",
    severity="error",
    check=check,
    bad=(
        """\
import os
os.environ['TF_GPU_ALLOCATOR'] = 'cuda_malloc_async'
os.environ['CUDA_VISIBLE_DEVICES'] = '0'
""",
        """\
from os import environ as env
env.setdefault('XLA_FLAGS', '--xla_gpu_cuda_data_dir=/usr')
""",
        """\
import os
def quiet():
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
quiet()
""",
        """\
import os
os.environ.update({'TF_ENABLE_ONEDNN_OPTS': '0', 'HOME': '/tmp'})
""",
    ),
    good=(
        """\
import os
os.environ['CUDA_VISIBLE_DEVICES'] = '0'
import tensorflow as tf
""",
        """\
import os
os.environ['MY_SETTING'] = '1'
""",
        """\
import os
os.environ['TF_CONFIG'] = '{}'
strategy = tf.distribute.MultiWorkerMirroredStrategy()
""",
        """\
import os
print(os.environ.get('CUDA_VISIBLE_DEVICES'))
""",
        """\
import os
def child():
    os.environ['CUDA_VISIBLE_DEVICES'] = '1'
    return start_worker
""",
    ),
)
