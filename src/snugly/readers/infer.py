"""Shapes of single nodes whose inputs came to be known only on the walk.

TensorFlow infers shapes once for the whole graph, and loses them where values pass through lists or
where the data decides how much there is. The walk knows the items of a list, and for the rest a
bound or what the user said, so it asks again, node by node.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from snugly.readers.node import Value
from snugly.readers.signatures import output_types, type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Inputs = list[tuple[Value, Any]]
OpenShape = tuple[int | None, ...] | None


class ShapeInference:
    """Answers are kept: a loop asks the same question in every turn.

    `named` holds sizes the user gave for what only the data knows, by the operator's type or the
    node's name.
    """

    def __init__(self, named: Mapping[str, int]) -> None:
        self._named = named
        self._answers: dict[Any, tuple[list[Value], bool]] = {}

    def outputs(self, node: Any, inputs: Inputs) -> tuple[list[Value], bool]:
        """The outputs of a NodeDef, and whether some are only a bound.

        Each input comes with its value, where that is known.
        """
        known = tuple(
            (value.dtype, value.shape, None if array is None else array.tobytes())
            for value, array in inputs
        )
        key = (node.name, known)
        if key not in self._answers:
            self._answers[key] = self._infer(node, inputs)
        return self._answers[key]

    def _infer(self, node: Any, inputs: Inputs) -> tuple[list[Value], bool]:
        values: list[Value] = []
        bounded = False
        types = output_types(node)
        shapes = _ask(node, inputs) or [None] * len(types)
        for position, (enum, shape) in enumerate(zip(types, shapes, strict=False)):
            filled = self._said(node, shape)
            if filled is None:
                filled = _bound(node.op, position, shape, inputs)
                bounded |= filled is not None and node.op not in _NEGLIGIBLE
            values.append(Value(*type_of(enum), filled))
        return values, bounded

    def _said(self, node: Any, shape: OpenShape) -> tuple[int, ...] | None:
        if shape is None:
            return None
        said = self._named.get(node.name, self._named.get(node.op))
        return _closed(tuple(said if size is None else size for size in shape))


def _closed(shape: tuple[int | None, ...]) -> tuple[int, ...] | None:
    sizes = tuple(size for size in shape if size is not None)
    return sizes if len(sizes) == len(shape) else None


# As many numbers as a tensor has dimensions: bytes that do not matter.
_NEGLIGIBLE = {"TensorListElementShape": (8,)}
_UNIQUE = ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
_SUPPRESSION = ("NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5")
_SELECTED = 2  # of a suppression's outputs, the indices and scores; then how many there are


def _bound(
    operator: str, position: int, shape: OpenShape, inputs: Inputs
) -> tuple[int, ...] | None:
    """The most that some operators can make, whatever the data."""
    first = inputs[0][0].shape if inputs else None
    bound: tuple[int, ...] | None = _NEGLIGIBLE.get(operator)
    if first is None:
        return bound
    if operator == "Where":
        bound = (math.prod(first), len(first))
    elif operator in _UNIQUE:
        bound = (math.prod(first),)
    elif operator in _SUPPRESSION and inputs[2][1] is not None:
        bound = (int(inputs[2][1]),) if position < _SELECTED else ()
    elif operator in {"DynamicPartition", "ListDiff"} and shape is not None:
        bound = tuple(first[axis] if size is None else size for axis, size in enumerate(shape))
    return bound


def _ask(node: Any, inputs: Inputs) -> list[OpenShape] | None:
    """What TensorFlow's shape function says; None where it refuses such inputs."""
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        sources: dict[str, Any] = {}
        for position, (value, known) in enumerate(inputs):
            name = f"input_{position}"
            if known is not None:
                sources[name] = tf.constant(known, dtype=value.dtype, shape=value.shape)
            else:
                sources[name] = tf.compat.v1.placeholder(value.dtype, value.shape)
        question = tf.compat.v1.GraphDef()
        asked = question.node.add(op=node.op, name="asked", input=list(sources))
        for name, attribute in node.attr.items():
            if not name.startswith("_"):
                asked.attr[name].CopyFrom(attribute)
        try:
            tf.graph_util.import_graph_def(question, name="", input_map=sources)
        except (ValueError, tf.errors.OpError):
            return None
        outputs = graph.get_operation_by_name("asked").outputs
    return [
        None if output.shape.rank is None else tuple(output.shape.as_list()) for output in outputs
    ]
