"""SNG422: an environment variable is set after TensorFlow was imported."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from snugly.linting.order import Event, events, follows, starts_runtime
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.findings import Severity
    from snugly.linting.program import Program

_KNOWN: Final = re.compile(r"(TF|CUDA|XLA|KERAS|ONEDNN|NCCL|ROCR|HIP|MIOPEN)_\w+")
_AT_IMPORT: Final = re.compile(
    r"TF_CPP_(MIN_LOG_LEVEL|MAX_VLOG_LEVEL|VMODULE)|TF_ENABLE_ONEDNN_OPTS|TF_ENABLED_DEVICE_TYPES|"
    r"TF_USE_(LEGACY_KERAS|MODULAR_FILESYSTEM)|TF_ENABLE_(COND|CONTROL_FLOW|WHILE|TENSOR_ARRAY)_?V2|"
    r"KERAS_(BACKEND|NNX_ENABLED|TORCH_DEVICE)"
)
"""Read by `import tensorflow` or `import keras`: every getenv() of TensorFlow 2.21 was listed with
a library that was loaded before it. All others are read when the runtime starts."""
_READ_LATE: Final = frozenset(
    {
        *("TF_CONFIG", "KERAS_HOME", "TF_KERAS", "TF_ENABLE_AUTO_MIXED_PRECISION"),
        *("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC", "TF_CUDNN_USE_AUTOTUNE"),
        *("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION"),
    }
)
"""Read whenever they are needed, or by others: TF_CONFIG when a distribution strategy is made,
XLA_PYTHON_… by JAX."""


def check(program: Program) -> Iterator[Alarm]:
    """`os.environ['TF_…'] = …` behind `import tensorflow`."""
    if "os" not in program.modules:
        return
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
                started = imported.get("operation")
                if started is not None and not follows(program, started, event):
                    started = None
                yield _alarm(event.node, name, reader.node, started and started.node)


def _alarm(node: ast.AST, name: str, imported: ast.AST, started: ast.AST | None) -> Alarm:
    line = getattr(imported, "lineno", "?")
    severity: Severity | None = None
    if _AT_IMPORT.fullmatch(name):
        said = (
            f"{name} is set after TensorFlow was imported (line {line}), which has read it by then"
        )
    elif started is not None:
        said = (
            f"{name} is set after TensorFlow has started in line"
            f" {getattr(started, 'lineno', '?')}, which has read it by then"
        )
    else:
        severity = "note"
        said = (
            f"{name} is set after TensorFlow was imported (line {line}): it is read once, when the"
            " runtime starts, so it counts only if nothing has run before"
        )
    return Alarm(node, said, severity=severity)


def _classify(program: Program, node: ast.AST) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        if isinstance(node, ast.ImportFrom) and node.module == "tensorflow":
            names += [f"tensorflow.{alias.name}" for alias in node.names]
        # A package's own files import one another while it is being imported, not after.
        tops = {name.partition(".")[0] for name in names} - {program.package}
        if not tops:
            return None
        if tops & {"keras", "tf_keras"} or any("tensorflow.keras" in one for one in names):
            return "keras"
        return "tensorflow" if "tensorflow" in tops else None
    if _set_variables(program, node):
        return "variable"
    return "operation" if starts_runtime(program, node) else None


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
    return [name for name in names if _KNOWN.fullmatch(name) and name not in _READ_LATE]


def _is_environment(program: Program, node: ast.expr) -> bool:
    return program.resolve(node) == "os.environ"


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


RULE = Rule(
    code="SNG422",
    name="env-var-set-after-import",
    severity="error",
    in_tests=True,
    check=check,
    bad=(
        """\
import os
os.environ['TF_GPU_ALLOCATOR'] = 'cuda_malloc_async'
os.environ['CUDA_VISIBLE_DEVICES'] = '0'
""",
        """\
from os import environ as env
tf.zeros([2, 2])
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
os.environ['GRPC_FAIL_FAST'] = 'use_caller'
os.environ['TF_ENABLE_AUTO_MIXED_PRECISION'] = '1'
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
