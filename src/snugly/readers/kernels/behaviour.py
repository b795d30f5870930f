"""How one kernel behaves, and the register of all that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snugly.readers.node import Node


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a kernel does with memory besides allocating its outputs.

    `shares`: per output, the input (position) whose buffer it shares, or -1.
    `takes`: per output, the inputs whose buffer it takes over if nobody else holds it.
    `workspace`: scratch, in bytes, freed when the kernel returns.
    `absent`: outputs that are not allocated at all.
    `expensive`: the executor hands it to a thread rather than running it in passing.
    `extra`: bytes of outputs that the graph does not show (oneDNN's pooling keeps a map of its
    maxima). They live until the last kernel has run that names their maker's output in
    `reads_extra`, and no longer than the kernel itself if there is none.
    `reads_extra`: inputs (positions) whose maker's `extra` outputs this kernel reads too.
    """

    shares: tuple[int, ...] = ()
    takes: tuple[tuple[int, ...], ...] = ()
    workspace: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    expensive: bool = True
    extra: tuple[int, ...] = ()
    reads_extra: tuple[int, ...] = ()


Rule = Callable[["Node"], Behaviour]

PLAIN = Behaviour()

# One module a family; each fills the register when it is imported.
FAMILIES = (
    "collectives",
    "control",
    "convolutions",
    "einsum",
    "elementwise",
    "gpu_convolutions",
    "gpu_linear_algebra",
    "gpu_neural",
    "gpu_recurrent",
    "images",
    "linear_algebra",
    "neural",
    "plain",
    "products",
    "random",
    "reductions",
    "shaping",
    "sparse",
    "variables",
)

_RULES: dict[str, Rule] = {}
_GPU_RULES: dict[str, Rule] = {}


def rule(*operators: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule for these operators."""

    def register(function: Rule) -> Rule:
        for operator in operators:
            _RULES[operator] = function
        return function

    return register


def gpu_rule(*operators: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule for these operators' kernels on a GPU."""

    def register(function: Rule) -> Rule:
        for operator in operators:
            _GPU_RULES[operator] = function
        return function

    return register


def always(behaviour: Behaviour, *operators: str) -> None:
    """Register one behaviour for these operators, whatever their node looks like."""
    rule(*operators)(lambda _: behaviour)


@cache
def _import_families() -> None:
    for family in FAMILIES:
        import_module(f"snugly.readers.kernels.{family}")


def rules() -> dict[str, Rule]:
    """Every operator that has a rule for the CPU's kernels."""
    _import_families()
    return _RULES


def gpu_rules() -> dict[str, Rule]:
    """Every operator whose kernel on a GPU does otherwise than the CPU's."""
    _import_families()
    return _GPU_RULES


def is_known(operator: str) -> bool:
    """Whether somebody looked at what this operator's kernel does."""
    return operator in rules() or operator in gpu_rules()


def behaviour_of(node: Node) -> Behaviour:
    """The kernel's behaviour; one we have no rule for allocates its outputs and nothing else.

    On a GPU no kernel is expensive to the executor: launching one ties up no thread of the CPU
    (OpKernel::OpKernel, core/framework/op_kernel.cc).
    """
    on_gpu = node.machine.device == "gpu"
    found = (gpu_rules().get(node.type) if on_gpu else None) or rules().get(node.type)
    behaviour = found(node) if found else PLAIN
    return replace(behaviour, expensive=False) if on_gpu else behaviour


def same_buffer(node: Node, output: int, *positions: int) -> tuple[int, ...]:
    """Those inputs whose buffer could hold the output: same type, same number of elements.

    OpKernelContext::forward_input (core/framework/op_kernel.cc) asks for no more than that,
    besides being the only holder of the buffer.
    """
    if output >= len(node.outputs):
        return ()
    result = node.outputs[output]
    return tuple(
        position
        for position in positions
        if position < len(node.inputs)
        and node.inputs[position].dtype == result.dtype
        and node.inputs[position].shape is not None
        and node.inputs[position].elements == result.elements
    )
