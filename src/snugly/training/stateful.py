"""Which operations of a block must not simply run again, and what is done with them instead."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Kind(Enum):
    """What the second pass does with an operation of the first."""

    REPEATED = "runs again"
    REMEMBERED = "its result of the first pass is used again"
    LEFT_OUT = "it happened, and happens once"
    DRAWN = "draws random numbers from a state that TensorFlow hides"
    CALLING = "runs a function, which may hold any of these"
    REFUSED = "cannot be repeated, and its gradient needs it to be"


DRAWN: Final = {
    "RandomUniform": "StatelessRandomUniformV2",
    "RandomStandardNormal": "StatelessRandomNormalV2",
    "TruncatedNormal": "StatelessTruncatedNormalV2",
    "RandomUniformInt": "StatelessRandomUniformIntV2",
}
"""Operations with a hidden state, and those that draw the same distribution from a given key.

Both are declared in tensorflow/core/ops/random_ops.cc and stateless_random_ops_v2.cc, TF 2.21."""

_READING: Final = frozenset({"ResourceGather", "ResourceGatherNd", "VariableShape"})
"""Read a variable, and have gradients of their own, which need the operation itself."""

_REPEATABLE: Final = _READING | {
    # Declared stateful so that nobody merges or moves them; what they compute is a function of
    # their inputs (tensorflow/core/ops/cudnn_rnn_ops.cc, numeric checks in array_ops.cc, TF 2.21).
    "CudnnRNN",
    "CudnnRNNV2",
    "CudnnRNNV3",
    "CheckNumerics",
    "CheckNumericsV2",
    "VarHandleOp",
    "TensorArrayV3",
}

_CALLING: Final = frozenset(
    {
        "While",
        "StatelessWhile",
        "If",
        "StatelessIf",
        "Case",
        "StatelessCase",
        "PartitionedCall",
        "StatefulPartitionedCall",
    }
)

_REFUSED: Final = frozenset({"EagerPyFunc", "RandomGamma", "ParameterizedTruncatedNormal"})
"""Have a gradient, so their result alone is not enough, and cannot be made to repeat it."""

_HIDDEN_STATE: Final = frozenset(DRAWN) | {
    "EagerPyFunc",
    "Multinomial",
    "ParameterizedTruncatedNormal",
    "PyFunc",
    "RandomGamma",
    "RandomPoisson",
    "RandomPoissonV2",
    "RandomShuffle",
}
"""Inside a loop, a branch or a called function the results of these cannot be reached."""


def kind_of(operation: str) -> Kind:
    """What becomes of an operation in the second pass, by the name of its type."""
    from tensorflow.python.framework import op_def_registry

    if operation in DRAWN:
        return Kind.DRAWN
    if operation in _CALLING:
        return Kind.CALLING
    if operation in _REFUSED:
        return Kind.REFUSED
    definition = op_def_registry.get(operation)
    if definition is None or not definition.is_stateful or operation in _REPEATABLE:
        return Kind.REPEATED
    return Kind.REMEMBERED if definition.output_arg else Kind.LEFT_OUT


@dataclass(frozen=True)
class Inside:
    """What a called function does to the world, as seen from its caller."""

    changed: frozenset[int]
    """Which of its arguments are variables that it assigns to."""
    hidden: str | None
    """An operation in it whose result cannot be had again, if there is one."""


def inside(names: Sequence[str], graph: Any) -> Inside:
    """What the functions of a loop, a branch or a call do that must happen once."""
    found = [_look(name, graph, ()) for name in names]
    return Inside(
        frozenset(index for each in found for index in each.changed),
        next((each.hidden for each in found if each.hidden), None),
    )


def called_functions(attributes: Any) -> list[str]:
    """The names of the functions that an operation runs, from its attributes."""
    names = []
    for value in (attributes or {}).values():
        if value.HasField("func"):
            names.append(value.func.name)
        elif value.HasField("list"):
            names.extend(function.name for function in value.list.func)
    return names


def _look(name: str, graph: Any, above: tuple[str, ...]) -> Inside:
    definition = None if name in above else _definition(name, graph)
    if definition is None:
        return Inside(frozenset(), None)
    place = {argument.name: i for i, argument in enumerate(definition.signature.input_arg)}
    changed: set[int] = set()
    hidden = None
    for node in definition.node_def:
        sources = [place.get(text.split(":")[0]) for text in node.input if text[0] != "^"]
        if node.op == "Identity" and sources and sources[0] is not None:
            place[node.name] = sources[0]
        elif node.op in _HIDDEN_STATE:
            hidden = hidden or node.op
        elif node.op in _CALLING:
            for nested in called_functions(node.attr):
                deeper = _look(nested, graph, (*above, name))
                hidden = hidden or deeper.hidden
                # The condition of an If and the index of a Case come before the arguments.
                first = 1 if node.op.endswith(("If", "Case")) else 0
                changed.update(_at(sources, [index + first for index in deeper.changed]))
        elif kind_of(node.op) in {Kind.LEFT_OUT, Kind.REMEMBERED} and node.op != "ReadVariableOp":
            changed.update(_at(sources, [0]))
    return Inside(frozenset(changed), hidden)


def _at(sources: Sequence[int | None], indices: Sequence[int]) -> Iterator[int]:
    for index in indices:
        if index < len(sources) and (source := sources[index]) is not None:
            yield source


def _definition(name: str, graph: Any) -> Any:
    """The definition of a function, wherever it is kept: in this graph, one around it, or eager."""
    from tensorflow.python.eager import context

    while graph is not None:
        function = graph._get_function(name)  # noqa: SLF001  # TensorFlow offers no other way
        if function is not None:
            return getattr(function, "cached_definition", None) or function.definition
        graph = getattr(graph, "outer_graph", None)
    eager: Any = context.context()
    return eager.get_function_def(name) if eager.has_function(name) else None
