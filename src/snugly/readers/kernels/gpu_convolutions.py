"""Convolutions on a GPU: copies that TensorFlow makes, and the workspace cuDNN asks for.

TensorFlow's copies follow from its sources (conv_ops_gpu.h, conv_grad_input_ops.cc,
conv_grad_filter_ops.cc, conv_ops_impl.h) and agree with every convolution measured. cuDNN's
workspace is that of whichever algorithm was fastest when the first step tried them all, so it is
not a fact but a likelihood, learnt from an H200 (TensorFlow 2.21, cuDNN 9) and seen nowhere else:
images stored channels first reach tensor cores as copies of all three operands, channels last. That
was within 5 % of the truth for four in five convolutions forward, nineteen in twenty back to the
image, and one in two back to the filter or with other operators fused in; many of these need none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, gpu_rule

if TYPE_CHECKING:
    from snugly.readers.node import Node, Shape

FEW_CHANNELS = 8  # below this, tensor cores are fed padded copies even of images channels last
# Partial sums of a filter's gradient, beyond the copies of its operands: the middle of those seen.
PARTIAL_SUMS = 0.1


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution seen the same way forward and backward: image, filter, result."""

    image: Shape  # [batch, ..., channels]
    filter: Shape  # [..., channels in, channels out]
    result: Shape  # [batch, ..., channels]
    strides: Shape
    item_bytes: int
    channels_last: bool
    padding: str

    @property
    def taps(self) -> int:
        """Places a filter looks at."""
        return prod(self.filter[:-2])

    @property
    def filter_bytes(self) -> int:
        """Of the filter as it is."""
        return prod(self.filter) * self.item_bytes

    @property
    def is_product(self) -> bool:
        """One place, no strides, channels last: a matrix product, done as such (conv_ops_impl.h).

        So is a filter as large as the image.
        """
        if not self.channels_last or prod(self.strides) != 1:
            return False
        covers = self.filter[:-2] == self.image[1:-1] and self.padding == "VALID"
        return self.taps == 1 or covers

    def padded_image_bytes(self) -> int:
        """The image as cuDNN gets it, which pads both sides alike: an odd row is added before."""
        sides = [
            size + _odd_padding(size, taps, stride, self.padding)
            for size, taps, stride in zip(
                self.image[1:-1], self.filter[:-2], self.strides, strict=True
            )
        ]
        return self.image[0] * prod(sides) * self.image[-1] * self.item_bytes

    @property
    def image_bytes(self) -> int:
        """Of the image as it is."""
        return prod(self.image) * self.item_bytes

    def copies(self) -> int:
        """All three operands channels last, channels padded to what tensor cores take."""
        whole = 4 if self.item_bytes == 4 else 8  # noqa: PLR2004 - float32's
        into, out = (-(-channels // whole) * whole for channels in self.filter[-2:])
        image = prod(self.image[:-1]) * into
        result = prod(self.result[:-1]) * out
        filters = self.taps * into * out if self.taps > 1 else 0  # one place: nothing to reorder
        return (image + result + filters) * self.item_bytes


def _odd_padding(size: int, taps: int, stride: int, padding: str) -> int:
    if padding != "SAME":
        return 0
    return max(0, (-(-size // stride) - 1) * stride + taps - size) % 2


def convolution_of(node: Node) -> Convolution | None:
    """The three operands of a convolution or of one of its gradients; None if one is unknown."""
    of_filter, of_image = "Filter" in node.type, "BackpropInput" in node.type
    image = node.outputs[0].shape if of_image else node.inputs[0].shape
    filters = node.outputs[0].shape if of_filter else node.inputs[1].shape
    result = node.inputs[2].shape if of_filter or of_image else node.outputs[0].shape
    if image is None or filters is None or result is None:
        return None
    layout = str(node.attribute("data_format") or "NHWC")
    channels_last = layout.endswith("C")
    places = slice(1, -1) if channels_last else slice(2, None)
    strides = tuple(node.attribute("strides") or ())[places] or (1,) * (len(image) - 2)
    return Convolution(
        _channels_last(image, channels_last),
        filters,
        _channels_last(result, channels_last),
        strides,
        node.inputs[2 if of_filter or of_image else 0].item_bytes,
        channels_last,
        str(node.attribute("padding") or "SAME"),
    )


def _channels_last(shape: Shape, already: bool) -> Shape:
    return shape if already else (shape[0], *shape[2:], shape[1])


def _strided(convolution: Convolution) -> bool:
    return prod(convolution.strides) > 1


def likely_workspace(convolution: Convolution) -> int:
    """Forward, and backward to the image."""
    few = convolution.filter[-2] < FEW_CHANNELS
    if convolution.channels_last:
        return convolution.copies() if few and convolution.taps > 1 else 0
    if convolution.taps == 1:
        return convolution.copies() if _strided(convolution) else 0
    return convolution.copies()


def likely_filter_workspace(convolution: Convolution) -> int:
    """Backward to the filter."""
    few = convolution.filter[-2] < FEW_CHANNELS
    if convolution.channels_last:
        return convolution.copies() if few and convolution.taps > 1 else 0
    if convolution.taps == 1 and not _strided(convolution):
        # A gradient an image, summed at the end, unless the copies are smaller.
        return min(convolution.image[0] * convolution.filter_bytes, convolution.copies())
    return round(convolution.copies() * (1 + PARTIAL_SUMS))


def _scratch(*sizes: int) -> Behaviour:
    return Behaviour(workspace=tuple(size for size in sizes if size))


def _padded_copy(convolution: Convolution) -> int:
    padded = convolution.padded_image_bytes()
    return padded if padded > convolution.image_bytes else 0


def likely_forward_workspace(convolution: Convolution) -> int:
    """As back to the image, but images of few channels are convolved as they are."""
    few = convolution.filter[-2] < FEW_CHANNELS
    if few and not convolution.channels_last and not _strided(convolution):
        return 0
    return likely_workspace(convolution)


@gpu_rule("Conv2D", "Conv3D")
def forward(node: Node) -> Behaviour:
    """The filter reordered, the image padded where its sides differ, cuDNN's workspace."""
    convolution = convolution_of(node)
    if convolution is None or convolution.is_product:
        return PLAIN
    return _scratch(
        _padded_copy(convolution),
        convolution.filter_bytes,
        likely_forward_workspace(convolution),
    )


@gpu_rule("_FusedConv2D")
def fused(node: Node) -> Behaviour:
    """conv_ops_fused_impl.h: float32 channels last goes to cuDNN channels first, there and back."""
    convolution = convolution_of(node)
    if convolution is None:
        return PLAIN
    turned: tuple[int, ...] = ()
    if convolution.channels_last and convolution.item_bytes == 4:  # noqa: PLR2004 - float32's
        turned = (convolution.image_bytes, node.outputs[0].bytes)
        convolution = replace(convolution, channels_last=False)
    return _scratch(
        _padded_copy(convolution),
        *turned,
        convolution.filter_bytes,
        likely_forward_workspace(convolution),
    )


@gpu_rule("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def to_image(node: Node) -> Behaviour:
    """The filter reordered; the gradient, which then takes the place of the output.

    A padded gradient is cut to size in one more copy.
    """
    convolution = convolution_of(node)
    if convolution is None or convolution.is_product:
        return PLAIN
    return _scratch(
        convolution.filter_bytes,
        convolution.padded_image_bytes(),
        likely_workspace(convolution),
        convolution.image_bytes if _padded_copy(convolution) else 0,
    )


@gpu_rule("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def to_filter(node: Node) -> Behaviour:
    """The gradient before it is reordered, the image padded, cuDNN's workspace."""
    convolution = convolution_of(node)
    if convolution is None or convolution.is_product:
        return PLAIN
    return _scratch(
        _padded_copy(convolution),
        convolution.filter_bytes,
        likely_filter_workspace(convolution),
    )
