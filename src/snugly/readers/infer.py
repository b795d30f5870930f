"""Shapes of single nodes whose inputs came to be known only on the walk.

TensorFlow infers shapes once for the whole graph, and loses them where values pass through lists or where the data
decides how much there is. The walk knows the items of a list, and for the rest a bound or what the user said, so it
asks again, node by node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from snugly.readers.node import Value
from snugly.readers.signatures import output_types, type_of

Inputs = list[tuple[Value, Any]]
OpenShape = tuple[int | None, ...] | None


class ShapeInference:
    """Answers are kept: a loop asks the same question in every turn.

    `named` holds sizes the user gave for what only the data knows, by the operator's type or the node's name.
    """

    def __init__(self, named: Mapping[str, int]) -> None:
        self._named = named
        self._answers: dict[Any, tuple[list[Value], bool]] = {}

    def outputs(self, node: Any, inputs: Inputs) -> tuple[list[Value], bool]:
        """The outputs of a NodeDef, given each input and, where known, its value; whether some are only a bound."""
        known = tuple((value.dtype, value.shape, None if array is None else array.tobytes()) for value, array in inputs)
        key = (node.name, known)
        if key not in self._answers:
            self._answers[key] = self._infer(node, inputs)
        return self._answers[key]

    def _infer(self, node: Any, inputs: Inputs) -> tuple[list[Value], bool]:
        values: list[Value] = []
        bounded = False
        for position, (enum, shape) in enumerate(zip(output_types(node), _ask(node, inputs), strict=False)):
            filled = self._said(node, shape)
            if filled is None:
                filled = _bound(node.op, position, shape, inputs)
                bounded |= filled is not None
            values.append(Value(*type_of(enum), filled))
        return values, bounded

    def _said(self, node: Any, shape: OpenShape) -> tuple[int, ...] | None:
        if shape is None:
            return None
        said = self._named.get(node.name, self._named.get(node.op))
        filled = tuple(said if size is None else size for size in shape)
        return None if None in filled else filled  # type: ignore[return-value]


def _bound(operator: str, position: int, shape: OpenShape, inputs: Inputs) -> tuple[int, ...] | None:
    """The most that some operators can make, whatever the data."""
    first = inputs[0][0].shape if inputs else None
    if operator == "TensorListElementShape":
        return (8,)  # as many numbers as a tensor has dimensions: bytes that do not matter
    if first is None:
        return None
    count = math.prod(first)
    if operator == "Where":
        return (count, len(first))
    if operator in ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"):
        return (count,)
    if operator in ("NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5") and inputs[2][1] is not None:
        return (int(inputs[2][1]),) if position < 2 else ()  # noqa: PLR2004  # indices and scores
    if operator in ("DynamicPartition", "ListDiff") and shape is not None:
        return tuple(first[axis] if size is None else size for axis, size in enumerate(shape))
    return None


def _ask(node: Any, inputs: Inputs) -> list[OpenShape]:
    import tensorflow as tf
    from tensorflow.core.framework import graph_pb2

    graph = tf.Graph()
    with graph.as_default():
        sources: dict[str, Any] = {}
        for position, (value, known) in enumerate(inputs):
            name = f"input_{position}"
            if known is not None:
                sources[name] = tf.constant(known, dtype=value.dtype, shape=value.shape)
            else:
                sources[name] = tf.compat.v1.placeholder(value.dtype, value.shape)
        question = graph_pb2.GraphDef()
        asked = question.node.add(op=node.op, name="asked", input=list(sources))
        for name, attribute in node.attr.items():
            if not name.startswith("_"):
                asked.attr[name].CopyFrom(attribute)
        tf.graph_util.import_graph_def(question, name="", input_map=sources)
        outputs = graph.get_operation_by_name("asked").outputs
    return [None if output.shape.rank is None else tuple(output.shape.as_list()) for output in outputs]
