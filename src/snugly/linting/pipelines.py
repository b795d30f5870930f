"""Pipelines: what was done to a dataset before a call, through chains, names and functions."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.linting.scopes import FUNCTIONS
from snugly.linting.vocabulary import DATASET_METHODS, DATASET_SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program
    from snugly.linting.scopes import FunctionNode

_LONGEST: Final = 60

DECODING_NAME: Final = re.compile(
    r"(?i).*(decod|augment|process_path|image|img|resize|crop|flip|rotate|jpe?g|png|wav|audio|"
    r"video|frame|spectrogram|mixup|cutmix).*"
)
PERHAPS_DECODING_NAME: Final = re.compile(
    r"(?i).*(load|read|parse|preprocess|process|extract|transform|fetch|open).*"
)
"""Names that say it only where the function itself cannot be seen."""
_SMALL_NAME: Final = re.compile(r"(?i).*(normali[sz]e|rescale|scale_|token|label|one_hot|cast).*")
_TEXT_NAME: Final = re.compile(r"(?i).*(encode|token|text|sentence|word|vocab|label|embed|hash).*")
_PYTHON_CALLS: Final = ("tensorflow.py_function", "tensorflow.numpy_function")
_TEXT_CALLS: Final = tuple(
    f"tensorflow.io.decode_{one}" for one in ("csv", "json", "proto", "base64", "compressed")
)
_DECODING_CALLS: Final = (
    "tensorflow.io.decode",
    "tensorflow.image.",
    "tensorflow.io.read_file",
    "tensorflow.audio.decode",
    "tensorflow.signal.",
    "keras.utils.load_img",
    "keras.preprocessing.image.",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done to a dataset."""

    method: str
    call: ast.Call


def steps_before(program: Program, call: ast.Call) -> list[Step]:
    """What happened to a dataset before a method is called on it, first things first.

    The first step is the source where it can be seen (`from_tensor_slices`, …).
    """
    steps: list[Step] = []
    current: ast.AST | None = call.func.value if isinstance(call.func, ast.Attribute) else None
    line = call.lineno
    entered: set[ast.AST] = set()
    for _ in range(_LONGEST):
        if isinstance(current, ast.Call):
            name = (program.name_of_call(current) or "").rpartition(".")[2]
            if name in DATASET_SOURCES:
                steps.append(Step(name, current))
                break
            if isinstance(current.func, ast.Attribute):
                steps.append(Step(current.func.attr, current))
                if current.func.attr not in DATASET_METHODS:
                    break
                current = current.func.value
                continue
            maker = program.callee(current)
            if maker is None or maker in entered:
                break
            entered.add(maker)
            current, line = _returned(program, maker)
        elif isinstance(current, ast.Name):
            current, line = _assigned_before(program, current, line)
        elif isinstance(current, ast.Attribute):
            values = program.attribute_values(current)
            current = values[0] if len(values) == 1 else None
        else:
            break
    return steps[::-1]


def mapped_functions(program: Program, call: ast.Call) -> Iterator[FunctionNode]:
    """The function given to `.map(…)` and, one level on, those of this file that it calls."""
    given = call.args[0] if call.args else None
    for keyword in call.keywords:
        if keyword.arg == "map_func":
            given = keyword.value
    function = _function(program, given, call)
    if function is None:
        return
    yield function
    for node in program.body_nodes(function):
        if isinstance(node, ast.Call):
            callee = program.callee(node)
            if callee is not None and callee is not function:
                yield callee


def is_decoding(program: Program, step: Step) -> bool:  # noqa: C901, PLR0912 - one case a line
    """Whether a map makes elements large: it loads, decodes or augments."""
    if step.method not in {"map", "interleave", "flat_map"} or not step.call.args:
        return False
    functions = list(mapped_functions(program, step.call))
    for function in functions:
        for node in program.body_nodes(function):
            if isinstance(node, ast.Call):
                name = program.name_of_call(node) or ""
                if name.startswith(_TEXT_CALLS):
                    continue
                if name.startswith(_DECODING_CALLS) or (name == "numpy.load"):
                    return True
                if name in _PYTHON_CALLS and node.args:
                    return not _TEXT_NAME.fullmatch(_given_name(node.args[0]))
    names = [_given_name(step.call.args[0])]
    unseen = not functions
    for function in functions:
        for node in program.body_nodes(function):
            if isinstance(node, ast.Call) and program.resolve(node.func) is None:
                if isinstance(function, ast.Lambda):
                    names.append(_given_name(node.func))
                unseen = unseen or (
                    isinstance(function, ast.Lambda) and program.callee(node) is None
                )
    if any(_SMALL_NAME.fullmatch(name) for name in names):
        return False
    if any(DECODING_NAME.fullmatch(name) for name in names):
        return True
    return unseen and any(PERHAPS_DECODING_NAME.fullmatch(name) for name in names)


def is_shrinking(step: Step) -> bool:
    """Whether a map makes elements small again: embeddings, tokens, labels."""
    if step.method != "map" or not step.call.args:
        return False
    return bool(re.search(r"(?i)embed|token|hash", _given_name(step.call.args[0])))


def is_seen(program: Program, step: Step) -> bool:
    """Whether the mapped function stands in the same file."""
    return any(True for _ in mapped_functions(program, step.call))


def _given_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):  # partial(decode, size=224), Augment()
        inner = node.args[0] if node.args else node.func
        return _given_name(inner)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _function(program: Program, given: ast.expr | None, place: ast.Call) -> FunctionNode | None:  # noqa: PLR0911 - one case a line
    if isinstance(given, ast.Lambda):
        return given
    if isinstance(given, ast.Name):
        definition = program.definition(given)
        if isinstance(definition, ast.ClassDef):
            return None
        return definition
    if isinstance(given, ast.Attribute):
        owner = program.class_behind(given.value, place)
        return None if owner is None else program.method(owner, given.attr)
    if isinstance(given, ast.Call):
        if given.args and (program.resolve(given.func) or "").endswith("partial"):
            return _function(program, given.args[0], place)
        owner = program.class_behind(given, place)
        if owner is not None:
            return program.method(owner, "__call__")
    return None


def _returned(program: Program, function: FunctionNode) -> tuple[ast.AST | None, int]:
    if isinstance(function, ast.Lambda):
        return function.body, function.lineno
    if isinstance(function, FUNCTIONS):
        for node in reversed(program.body_nodes(function)):
            if isinstance(node, ast.Return):
                return node.value, node.lineno + 1
    return None, 0


def _assigned_before(program: Program, name: ast.Name, line: int) -> tuple[ast.AST | None, int]:
    """The last value given to a name above a line; a loop's own earlier turns are not followed."""
    around = set(program.ancestors(name))
    for binding in sorted(program.bindings(name), key=lambda one: -one.line):
        if binding.line >= line or binding.value is None or binding.value in around:
            continue  # `ds = (⏎ ds.map(…))` stands above its own value
        if binding.how == "value":
            if program.are_exclusive(binding.value, name):
                continue
            return binding.value, binding.line
        if binding.how in {"part", "loop", "with"}:
            break  # `train, test = load(…)`: what was before is over
    return None, line
