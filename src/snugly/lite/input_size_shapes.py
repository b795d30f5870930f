"""Shapes and small values, operator by operator.

Wider than what patches need, since a whole model is followed; but an operator without a rule is
an error only if the shape of one of its inputs has changed. Small tensors of integers are followed
by value too: shapes that a model computes for its own RESHAPE.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from snugly.lite.input_size_rules import (
    RULES,
    broadcast,
    check_broadcast,
    reduced,
    windowed,
)
from snugly.lite.patches_layers import ELEMENTWISE

if TYPE_CHECKING:
    from snugly.lite.input_size_rules import Call, Shape

UNARY: Final = ELEMENTWISE - {"ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "PRELU"} | {
    "CAST",
    "GELU",
    "L2_NORMALIZATION",
    "LOG_SOFTMAX",
    "RELU_0_TO_1",
    "RELU_N1_TO_1",
    "SIGN",
    "SOFTMAX",
    "ZEROS_LIKE",
}
BINARY: Final = {
    "ADD", "DIV", "EQUAL", "FLOOR_DIV", "FLOOR_MOD", "GREATER", "GREATER_EQUAL", "LESS",
    "LESS_EQUAL", "MAXIMUM", "MINIMUM", "MUL", "NOT_EQUAL", "POW", "PRELU", "SQUARED_DIFFERENCE",
    "SUB",
}  # fmt: skip
WINDOWED: Final = {"CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"}
REDUCTIONS: Final = {
    "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL",
}  # fmt: skip


def shapes_of(call: Call) -> list[Shape] | None:
    """The shapes of an operator's outputs, or None where there is no rule for it."""
    name = call.operator.name
    if call.operator.is_custom:
        return None
    if name in UNARY:
        return [call.shape()]
    if name in BINARY:
        check_broadcast(call)
        return [broadcast(call.shape(0), call.shape(1))]
    if name in WINDOWED:
        return [windowed(call)]
    if name in REDUCTIONS:
        return [reduced(call)]
    rule = RULES.get(name)
    return None if rule is None else rule(call)


def values_of(call: Call) -> tuple[int, ...] | None:  # noqa: PLR0911 - one for each operator
    """The integers that an operator makes, where it works on shapes."""
    match call.operator.name:
        case "SHAPE":
            return call.shape()
        case "CAST" | "RESHAPE" | "SQUEEZE" | "EXPAND_DIMS":
            return call.values[0]
        case "PACK" | "CONCATENATION":
            parts: list[int] = []
            for value in call.values:
                if value is None:
                    return None
                parts += value
            return tuple(parts)
        case "STRIDED_SLICE" if call.values[0] is not None and len(call.shape()) == 1:
            begin, end, step = (call.value(position)[0] for position in (1, 2, 3))
            masks = [call.option(field) & 1 for field in (0, 1, 4)]
            if masks[2]:
                return (call.values[0][begin],)
            return call.values[0][
                slice(None if masks[0] else begin, None if masks[1] else end, step)
            ]
        case "MUL" if None not in call.values[:2]:
            left, right = call.value(0), call.value(1)
            return tuple(a * b for a, b in zip(left, right, strict=False))
        case "REDUCE_PROD" if call.values[0] is not None and len(call.shape()) == 1:
            return (math.prod(call.values[0]),)
        case _:
            return None
