"""What a function of a pipeline holds while it runs, beside its input and its output.

A map over images decodes, casts and resizes: for a moment all of these are there at once. Each
tensor lives from the operation that makes it to the last that reads it; operations run in the
order of the graph, and one that may write over its input does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IN_PLACE: Final = frozenset(
    """Abs Add AddV2 Sub Mul RealDiv Div Neg Exp Log Sqrt Square Relu Relu6 Sigmoid Tanh Minimum
    Maximum Pow Rsqrt Floor Ceil Round ClipByValue Identity Reshape ExpandDims Squeeze
    Snapshot StopGradient""".split()  # noqa: SIM905 - a list of thirty lines reads worse
)
"""Operations that forward an input of the same size to their output (forward_input_or_allocate)."""

_ELEMENTWISE: Final = frozenset(
    "Placeholder Const Identity Cast Mul RealDiv AddV2 Sub Neg NoOp".split()  # noqa: SIM905
)
_MOST_OPERATIONS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Inside:
    """The most that one call holds at a time, its output included, its input not."""

    peak: int
    exact: bool
    """False where some size inside is not known: the peak is then at least this."""


def concrete(function: Any) -> Any:
    """The traced function behind what a dataset keeps."""
    return function.function


def is_stateless(function: Any) -> bool:
    """Whether calling it again gives the same: no random numbers, variables, tables, Python.

    A call or a branch is of a stateful kind where anything in it is, so one graph is enough.
    """
    operations = concrete(function).graph.get_operations()
    return not any(one.op_def is None or one.op_def.is_stateful for one in operations)


def is_elementwise(function: Any) -> bool:
    """Whether it only casts and scales by plain numbers, so that batches can be cast instead."""
    graph = concrete(function).graph
    for operation in graph.get_operations():
        if operation.type not in _ELEMENTWISE:
            return False
        if operation.type == "Const" and operation.outputs[0].shape.rank != 0:
            return False
    return not concrete(function).captured_inputs


def inside(function: Any, shapes: Mapping[str, Sequence[int]] | None = None) -> Inside:
    """Play the lives of a function's tensors; `shapes` has those that were measured."""
    graph = concrete(function).graph
    operations = graph.get_operations()
    if len(operations) > _MOST_OPERATIONS:
        return Inside(0, exact=False)
    last_use = {
        tensor.name: place
        for place, operation in enumerate(operations)
        for tensor in operation.inputs
    }
    for tensor in graph.outputs:
        last_use[tensor.name] = len(operations)
    live: dict[str, int] = {}
    peak, exact = 0, True
    for place, operation in enumerate(operations):
        if operation.type in {"Placeholder", "Const"}:
            continue
        for tensor in operation.outputs:
            size = _bytes(tensor, shapes or {})
            exact = exact and size is not None
            donor = _donor(operation, tensor, live, last_use, place)
            if donor is not None and live[donor] == size:
                del live[donor]
            live[tensor.name] = size or 0
        peak = max(peak, sum(live.values()))
        for name in [name for name in live if last_use.get(name, place) <= place]:
            del live[name]
    return Inside(peak, exact)


def _donor(
    operation: Any, tensor: Any, live: dict[str, int], last_use: dict[str, int], place: int
) -> str | None:
    """The input whose memory the output may take over: it dies here and is of the same type."""
    if operation.type not in IN_PLACE:
        return None
    for source in operation.inputs:
        dies = last_use.get(source.name) == place and source.name in live
        if dies and source.dtype == tensor.dtype:
            return source.name
    return None


def _bytes(tensor: Any, shapes: Mapping[str, Sequence[int]]) -> int | None:
    import tensorflow as tf

    if tensor.dtype in {tf.resource, tf.variant, tf.string}:
        return 0  # an image's file in a string is an input, and counted there
    shape = shapes.get(tensor.name)
    if shape is None:
        if not tensor.shape.is_fully_defined():
            return None
        shape = tensor.shape.as_list()
    count = 1
    for side in shape:
        count *= int(side)
    return count * tensor.dtype.size


def measured_shapes(function: Any, element: Any) -> dict[str, tuple[int, ...]]:
    """The shapes that open tensors of a function really have, by running it once on an element.

    The function's graph is imported into another one, where the shapes are fetched. Where that
    cannot be done (it captures variables, or runs Python), nothing is known.
    """
    import tensorflow as tf

    called = concrete(function)
    if called.captured_inputs:
        return {}
    graph = called.graph
    wanted = [
        tensor
        for operation in graph.get_operations()
        if operation.type != "Placeholder"
        for tensor in operation.outputs
        if not tensor.shape.is_fully_defined()
        and tensor.dtype not in {tf.resource, tf.variant, tf.string}
    ]
    flat = tf.nest.flatten(element, expand_composites=True)
    if not wanted or len(flat) != len(graph.inputs) or len(wanted) > _MOST_OPERATIONS:
        return {}

    def fetch(*arguments: Any) -> list[Any]:
        given = {tensor.name: value for tensor, value in zip(graph.inputs, arguments, strict=True)}
        found = tf.graph_util.import_graph_def(
            graph.as_graph_def(add_shapes=False),
            input_map=given,
            return_elements=[tensor.name for tensor in wanted],
        )
        return [tf.shape(tensor) for tensor in found]

    try:
        values = tf.function(fetch)(*flat)
    except (tf.errors.OpError, ValueError, TypeError):
        return {}
    return {
        tensor.name: tuple(int(side) for side in value)
        for tensor, value in zip(wanted, values, strict=True)
    }
