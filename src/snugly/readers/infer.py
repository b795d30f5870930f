"""Shapes of single nodes whose inputs came to be known only on the walk.

TensorFlow infers shapes once for the whole graph and loses them where values pass through lists. The walk knows the
items of a list, so it can ask again, node by node.
"""

from __future__ import annotations

from typing import Any

from snugly.readers.node import Shape, Value
from snugly.readers.signatures import type_of


class ShapeInference:
    """Answers are kept: a loop asks the same question in every turn."""

    def __init__(self) -> None:
        self._answers: dict[Any, list[Shape | None]] = {}

    def outputs(self, node: Any, inputs: list[tuple[Value, Any]]) -> list[Value]:
        """The outputs of a NodeDef, given each input and, where known, its value."""
        key = (
            node.name,
            tuple((value.dtype, value.shape, None if known is None else known.tobytes()) for value, known in inputs),
        )
        if key not in self._answers:
            self._answers[key] = _ask(node, inputs)
        shapes = self._answers[key]
        return [Value(*type_of(enum), shape) for (enum, _), shape in zip(self._types(node), shapes, strict=False)]

    def _types(self, node: Any) -> list[tuple[int, None]]:
        from snugly.readers.signatures import output_types

        return [(enum, None) for enum in output_types(node)]


def _ask(node: Any, inputs: list[tuple[Value, Any]]) -> list[Shape | None]:
    import tensorflow as tf
    from tensorflow.core.framework import graph_pb2

    graph = tf.Graph()
    with graph.as_default():
        names = []
        for position, (value, known) in enumerate(inputs):
            if known is not None:
                source = tf.constant(known, dtype=value.dtype, shape=value.shape, name=f"input_{position}")
            else:
                source = tf.compat.v1.placeholder(value.dtype, value.shape, name=f"input_{position}")
            names.append(source.op.name)
        question = graph_pb2.GraphDef()
        asked = question.node.add()
        asked.op, asked.name = node.op, "asked"
        for name, attribute in node.attr.items():
            if not name.startswith("_"):
                asked.attr[name].CopyFrom(attribute)
        asked.input.extend(names)
        returned = tf.graph_util.import_graph_def(
            question, name="", input_map={name: graph.get_tensor_by_name(f"{name}:0") for name in names}
        )
        del returned
        outputs = graph.get_operation_by_name("asked").outputs
    return [tuple(output.shape.as_list()) if output.shape.is_fully_defined() else None for output in outputs]
