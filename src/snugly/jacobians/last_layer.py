"""Rows of a function that ends in a dense layer: its last product is looked up, not computed.

A row begins with a one among zeros. Multiplied with the weights of a last dense layer that gives
the weights of one unit, which are already there; in a dense net this product is as dear as all
that follows. Activations after the layer scale its result, and biases and reshapes leave it alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.jacobians.subject import tensorflow

if TYPE_CHECKING:
    from collections.abc import Sequence

_SAME_ORDER: Final = {"ExpandDims", "Identity", "Reshape", "Squeeze"}
"""Operations that hand on their first input's numbers, in the same order."""
_ENTRY_BY_ENTRY: Final = {
    "Elu", "Exp", "LeakyRelu", "Relu", "Relu6", "Selu", "Sigmoid", "Softplus", "Softsign", "Square",
    "Tanh",
}  # fmt: skip
"""Operations of which each result depends on one number, at the same place."""
_SHIFTS: Final = {"Add", "AddV2", "BiasAdd", "Sub"}
"""Operations that may add what does not depend on the input, such as a bias."""
_OWN_GRADIENT: Final = "_gradient_op_type"
"""The mark of an operation whose gradient somebody replaced."""


@dataclass(frozen=True, slots=True)
class LastLayer:
    """A dense layer whose result is, up to activations, a function's output."""

    inputs: Any
    """What it was applied to, of shape (rows, features): what is differentiated in its place."""
    weights: Any
    units_first: bool
    """Whether the weights are of shape (units, features)."""
    slope: Any
    """How the output changes with each result of the layer; None where they are equal."""

    def seed(self, number: Any, examples: int) -> Any:
        """The derivative by `inputs` of the output with this number, of shape (rows, features).

        Args:
            number: Which of the outputs, or which of each example's outputs.
            examples: How many examples each have an output of that number; 0 where there is one.
        """
        tf = tensorflow()
        rows, features = self.inputs.shape
        blocks = max(1, examples)
        each = rows // blocks
        units = self.weights.shape[0 if self.units_first else 1]
        seed = tf.gather(self.weights, number % units, axis=0 if self.units_first else 1)
        seed = tf.reshape(seed, (1, 1, features))
        if self.slope is not None:
            slopes = tf.gather(tf.reshape(self.slope, (blocks, -1)), number, axis=1)
            seed *= tf.reshape(slopes, (blocks, 1, 1))
        if each > 1:
            seed *= tf.reshape(tf.one_hot(number // units, each, dtype=seed.dtype), (1, each, 1))
        return tf.reshape(tf.broadcast_to(seed, (blocks, each, features)), (rows, features))


def last_layer(tape: Any, output: Any, sources: Sequence[Any]) -> LastLayer | None:
    """The dense layer that a function ends in, if it ends in one.

    Args:
        tape: What recorded the function, in this graph.
        output: Its result.
        sources: What it is differentiated by.
    """
    if not output.dtype.is_floating:
        return None  # derivatives of complex numbers are conjugates
    tf = tensorflow()
    origins = _origins(output.graph, sources)
    slope = None
    while True:
        operation = output.op
        if _has_own_gradient(operation) or not operation.inputs:
            return None
        before = operation.inputs[0]
        if operation.type == "MatMul":
            return _dense(operation, slope, origins)
        if operation.type in _ENTRY_BY_ENTRY:
            change = tape.gradient(output, before, tf.ones_like(output))
            if change is None:
                return None
            change = tf.reshape(change, (-1,))
            slope = change if slope is None else slope * change
        elif operation.type in _SHIFTS:
            before = _shifted(operation, origins)
            if before is None:
                return None
        elif operation.type not in _SAME_ORDER:
            return None
        output = before


def _dense(operation: Any, slope: Any, origins: set[int]) -> LastLayer | None:
    inputs, weights = operation.inputs
    known = inputs.shape.is_fully_defined() and weights.shape.is_fully_defined()
    if operation.get_attr("transpose_a") or not known or _depends(weights, origins):
        return None
    return LastLayer(inputs, weights, operation.get_attr("transpose_b"), slope)


def _shifted(operation: Any, origins: set[int]) -> Any:
    """Which operand of a sum goes on to the input, if it is one and has the sum's shape."""
    left, right = operation.inputs
    result = operation.outputs[0].shape
    if not _depends(right, origins):
        kept = left
    elif operation.type in ("Add", "AddV2") and not _depends(left, origins):
        kept = right
    else:
        return None
    fixed = kept.shape.is_fully_defined() and result.is_fully_defined()
    return kept if fixed and math.prod(kept.shape) == math.prod(result) else None


def _origins(graph: Any, sources: Sequence[Any]) -> set[int]:
    """The tensors of this graph that stand for the sources: inputs, or variables' handles."""
    tf = tensorflow()
    handles = {id(s.handle) for s in sources if isinstance(s, tf.Variable)}
    found = {id(s) for s in sources}
    return found | {id(inside) for outside, inside in graph.captures if id(outside) in handles}


def _depends(tensor: Any, origins: set[int]) -> bool:
    waiting, seen = [tensor], set()
    while waiting:
        current = waiting.pop()
        if id(current) in origins:
            return True
        if id(current.op) not in seen:
            seen.add(id(current.op))
            waiting.extend(current.op.inputs)
    return False


def _has_own_gradient(operation: Any) -> bool:
    return _OWN_GRADIENT in operation.node_def.attr
