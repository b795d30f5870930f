"""Where TensorFlow puts a node on a machine with a GPU, and in whose memory its tensors are.

The placer takes the GPU wherever a kernel for the node's types exists. Even then some tensors stay
in host memory, where the GPU's allocator never sees them: shapes, axes, seeds, handles, and most of
what is computed in int32.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from snugly.readers.node import Node

_LETTERS = {
    "bfloat16": "g",
    "float16": "e",
    "float32": "f",
    "float64": "d",
    "complex64": "F",
    "complex128": "D",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "bool": "?",
    "string": "s",
    "resource": "r",
    "variant": "v",
}
_ON_HOST = frozenset(["int32", "string", "resource"])


@dataclass(frozen=True, slots=True)
class Kernel:
    """One line of the table."""

    attribute: str  # "-" where one kernel serves all types
    types: str
    host_inputs: str
    host_outputs: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a node runs, and which of its inputs and outputs (positions) are in host memory."""

    on_gpu: bool
    host_inputs: frozenset[int]
    host_outputs: frozenset[int]


@cache
def kernels() -> dict[str, tuple[Kernel, ...]]:
    """Every operator with a kernel for GPUs."""
    found: dict[str, tuple[Kernel, ...]] = {}
    text = files("snugly.readers.kernels").joinpath("gpu_kernels.txt").read_text()
    for line in text.splitlines():
        if line and not line.startswith("#"):
            operator, *rest = line.split()
            found[operator] = (*found.get(operator, ()), Kernel(*rest))
    return found


def place(node: Node) -> Placement:
    """What the placer and the kernel's registration say of a node, on a machine with a GPU."""
    return place_kernel(node.type, node.attribute, len(node.inputs), len(node.outputs))


def place_kernel(
    operator: str, attribute: Callable[[str], Any], inputs: int, outputs: int
) -> Placement:
    """The same where only operator, attributes and the number of inputs and outputs are known."""
    for kernel in kernels().get(operator, ()):
        if (
            kernel.attribute == "-"
            or _LETTERS.get(attribute(kernel.attribute), " ") in kernel.types
        ):
            return Placement(
                True,
                _positions(kernel.host_inputs, inputs),
                _positions(kernel.host_outputs, outputs),
            )
    return Placement(False, frozenset(range(inputs)), frozenset(range(outputs)))


def argument_on_host(dtype: str) -> bool:
    """Whether a function's argument of this type is in host memory (_Arg, function_ops.cc)."""
    return dtype in _ON_HOST


def _positions(text: str, count: int) -> frozenset[int]:
    if text == "-":
        return frozenset()
    if text == "*":
        return frozenset(range(count))
    return frozenset(int(position) % max(1, count) for position in text.split(","))


@contextmanager
def as_with_a_gpu() -> Iterator[None]:
    """While inside, Keras traces what it would on a machine with a GPU.

    There it takes cuDNN's kernels for LSTM and GRU layers and leaves channels where they are. It
    asks TensorFlow for devices in two functions, which this replaces. A Keras that has them not is
    left as it is, and traces what it would here.
    """
    from importlib import import_module

    answers = {
        "keras.src.backend.tensorflow.rnn": ("_is_gpu_available", lambda: True),
        "keras.src.backend.tensorflow.nn": ("_cpu_only", lambda: False),
    }
    replaced: list[tuple[Any, str, Any]] = []
    for module_name, (name, answer) in answers.items():
        try:
            module = import_module(module_name)
        except ImportError:
            continue
        if hasattr(module, name):
            replaced.append((module, name, getattr(module, name)))
            setattr(module, name, answer)
    try:
        yield
    finally:
        for module, name, original in replaced:
            setattr(module, name, original)
