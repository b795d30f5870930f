"""Image operators that need room besides their output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, rule, same_buffer

if TYPE_CHECKING:
    from snugly.readers.node import Node


@rule("RGBToHSV")
def rgb_to_hsv(node: Node) -> Behaviour:
    """image/colorspace_op.cc: the range of each pixel's three values."""
    return Behaviour(workspace=(node.inputs[0].bytes // 3,))


@rule("AdjustHue")
def adjust_hue(node: Node) -> Behaviour:
    """image/adjust_hue_op.cc."""
    return Behaviour(takes=(same_buffer(node, 0, 0),))


@rule("ScaleAndTranslate")
def scale_and_translate(node: Node) -> Behaviour:
    """image/scale_and_translate_op.cc: float32 [batch, new rows, old columns, channels] between."""
    source, result = node.inputs[0].shape, node.outputs[0].shape
    if source is None or result is None:
        return PLAIN
    return Behaviour(workspace=(source[0] * result[1] * source[2] * source[3] * 4,))


@rule("ScaleAndTranslateGrad")
def scale_and_translate_gradient(node: Node) -> Behaviour:
    """The same way back: [batch, old rows, new columns, channels]."""
    source, result = node.inputs[0].shape, node.outputs[0].shape
    if source is None or result is None:
        return PLAIN
    return Behaviour(workspace=(source[0] * source[1] * result[2] * source[3] * 4,))
