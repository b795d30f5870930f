"""Operators as patches see them: which rows and columns of its input an output pixel needs.

Padding is made explicit: a PAD in front of a convolution and the padding SAME both become numbers
of rows before and after, so that a patch can be given what lies inside the image and be padded
only where the image ends. What cannot be cut into rows and columns is `other`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from snugly.lite.rewriting import Rewriting
    from snugly.readers.tflite import LiteOperator, LiteTensor

SAME: Final = 0  # Padding, schema.fbs
VALID: Final = 1
RANK: Final = 4  # batch, rows, columns, channels
# What TFLite Micro's SLICE, PAD and CONCATENATION take, and its convolutions too.
TYPES: Final = {"FLOAT32", "INT8", "INT16"}
WINDOWS: Final = {"CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"}
CONVOLUTIONS: Final = {"CONV_2D", "DEPTHWISE_CONV_2D"}
ELEMENTWISE: Final = frozenset(
    """
    ABS ADD CEIL COS DEQUANTIZE DIV ELU EXP FLOOR HARD_SWISH LEAKY_RELU LOG LOGISTIC MAXIMUM
    MINIMUM MUL NEG PRELU QUANTIZE RELU RELU6 ROUND RSQRT SIN SQRT SQUARE SQUARED_DIFFERENCE SUB
    TANH
    """.split()  # noqa: SIM905 - a page of lines otherwise
)
"""Operators whose every output pixel depends on the same pixel of its inputs."""


@dataclass(frozen=True, slots=True)
class Window:
    """What one output row needs: `taps` input rows from `stride` times its number on."""

    taps: int = 1  # with dilation
    stride: int = 1
    before: int = 0  # rows of padding
    after: int = 0

    def needed(self, low: int, high: int) -> tuple[int, int]:
        """The input rows of output rows, padding included."""
        first = low * self.stride - self.before
        return first, (high - 1) * self.stride - self.before + self.taps


@dataclass(frozen=True, slots=True)
class Layer:
    """One operator, or a PAD and the convolution behind it."""

    operator: int
    name: str
    kind: Literal["window", "pad", "same", "transpose", "other"]
    inputs: tuple[int, ...]  # tensors of the image, in their order
    outputs: tuple[int, ...]
    windows: tuple[Window, Window] = (Window(), Window())  # of rows, of columns
    folded: int | None = None  # the PAD that is part of it
    permutation: tuple[int, ...] = ()
    work: int = 0  # multiply-accumulates for one element of the output
    uniform: bool = True  # treats all dimensions alike: no constants of more than one element

    @property
    def output(self) -> int:
        """The one output of whatever can be patched."""
        return self.outputs[0]


def layers_of(rewriting: Rewriting) -> list[Layer]:
    """The operators of the first subgraph, each PAD that can be joined to its convolution."""
    reading = _Reading(rewriting)
    layers = [reading.layer(index) for index in range(len(rewriting.model.main.operators))]
    return _folded(layers, rewriting)


def same_padding(size: int, window: Window) -> tuple[int, int]:
    """The padding before and after that a kernel takes for SAME."""
    count = -(-size // window.stride)
    total = max(0, (count - 1) * window.stride + window.taps - size)
    return total // 2, total - total // 2


class _Reading:
    def __init__(self, rewriting: Rewriting) -> None:
        self._rewriting = rewriting
        self._main = rewriting.model.main

    def layer(self, index: int) -> Layer:
        operator = self._main.operators[index]
        values = tuple(i for i in operator.inputs if i >= 0 and not self._tensor(i).is_constant)
        found = self._patchable(index, operator, values)
        return found or Layer(index, operator.name, "other", values, operator.outputs)

    def _tensor(self, index: int) -> LiteTensor:
        return self._main.tensors[index]

    def _patchable(  # noqa: PLR0911 - each kind of layer has its own
        self, index: int, operator: LiteOperator, values: tuple[int, ...]
    ) -> Layer | None:
        if operator.is_custom or len(operator.outputs) != 1 or not values:
            return None
        if min(operator.outputs) < 0 or not all(
            self._is_image(tensor) for tensor in (*values, *operator.outputs)
        ):
            return None
        if operator.name in WINDOWS:
            return self._window(index, operator, values)
        if operator.name == "PAD":
            return self._pad(index, operator, values)
        if operator.name == "TRANSPOSE":
            order = self._rewriting.constant_integers((*operator.inputs, -1, -1)[1])
            if order is None or sorted(order) != list(range(RANK)):
                return None
            return Layer(
                index, operator.name, "transpose", values, operator.outputs, permutation=order
            )
        if operator.name == "CONCATENATION":
            axis = self._rewriting.option(index, 0, struct.Struct("<i"))
            whole = len(values) == len(operator.inputs)
            kind = "same" if axis % RANK == RANK - 1 and whole else None
        else:
            kind = "same" if self._is_elementwise(operator, values) else None
        if kind is None:
            return None
        uniform = operator.name != "CONCATENATION" and all(
            self._tensor(one).elements == 1
            for one in operator.inputs
            if one >= 0 and one not in values
        )
        return Layer(index, operator.name, kind, values, operator.outputs, uniform=uniform)

    def _is_image(self, index: int) -> bool:
        tensor = self._tensor(index)
        return (
            len(tensor.shape) == RANK
            and min(tensor.shape) > 0
            and tensor.type.name in TYPES
            and not tensor.is_variable
        )

    def _is_elementwise(self, operator: LiteOperator, values: tuple[int, ...]) -> bool:
        shape = self._tensor(operator.outputs[0]).shape
        if operator.name not in ELEMENTWISE or any(
            self._tensor(index).shape != shape for index in values
        ):
            return False
        # A constant is used as it is, so it must be the same for every row and column.
        return all(
            max(self._tensor(index).shape[:-1], default=1) == 1
            for index in operator.inputs
            if index >= 0 and index not in values
        )

    def _window(self, index: int, operator: LiteOperator, values: tuple[int, ...]) -> Layer | None:
        options = operator.options
        image, output = self._tensor(values[0]).shape, self._tensor(operator.outputs[0]).shape
        work = 0
        if operator.name in CONVOLUTIONS:
            if len(values) != 1 or len(operator.inputs) < 2 or operator.inputs[1] < 0:  # noqa: PLR2004
                return None
            filters = self._tensor(operator.inputs[1])
            if values[0] != operator.inputs[0] or len(filters.shape) != RANK:
                return None
            taps = (filters.shape[1], filters.shape[2])
            dilation = (options["dilation_height"], options["dilation_width"])
            work = taps[0] * taps[1] * (filters.shape[3] if operator.name == "CONV_2D" else 1)
        else:
            taps = (options["filter_height"], options["filter_width"])
            dilation = (1, 1)
        strides = (options["stride_height"], options["stride_width"])
        if min(*taps, *strides, *dilation) < 1 or options["padding"] not in {SAME, VALID}:
            return None
        windows: list[Window] = []
        for axis in range(2):
            window = Window((taps[axis] - 1) * dilation[axis] + 1, strides[axis])
            size, made = image[axis + 1], output[axis + 1]
            if options["padding"] == SAME:
                before, after = same_padding(size, window)
                expected = -(-size // window.stride)
                window = Window(window.taps, window.stride, before, after)
            else:
                expected = (size - window.taps) // window.stride + 1
            if made != expected:  # the file contradicts its own kernels
                return None
            windows.append(window)
        return Layer(
            index,
            operator.name,
            "window",
            values,
            operator.outputs,
            (windows[0], windows[1]),
            work=work,
        )

    def _pad(self, index: int, operator: LiteOperator, values: tuple[int, ...]) -> Layer | None:
        amounts = (
            self._rewriting.constant_integers(operator.inputs[1])
            if len(operator.inputs) == 2 and len(values) == 1  # noqa: PLR2004
            else None
        )
        image, output = self._tensor(values[0]).shape, self._tensor(operator.outputs[0]).shape
        if amounts is None or len(amounts) != 2 * RANK or min(amounts) < 0:
            return None
        if self._rewriting.quantization(values[0]) != self._rewriting.quantization(
            operator.outputs[0]
        ):
            return None
        if output != tuple(
            size + amounts[2 * axis] + amounts[2 * axis + 1] for axis, size in enumerate(image)
        ):
            return None
        rows, columns = Window(1, 1, *amounts[2:4]), Window(1, 1, *amounts[4:6])
        return Layer(index, "PAD", "pad", values, operator.outputs, (rows, columns))


def _folded(layers: list[Layer], rewriting: Rewriting) -> list[Layer]:
    """Join each PAD of rows and columns to the one unpadded convolution that reads it."""
    main = rewriting.model.main
    readers: dict[int, list[Layer]] = {}
    for layer in layers:
        for index in main.operators[layer.operator].inputs:
            readers.setdefault(index, []).append(layer)
    joined: dict[int, Layer] = {}  # by the operator of the convolution
    for layer in layers:
        if layer.kind != "pad" or layer.output in main.outputs:
            continue
        image, padded = main.tensors[layer.inputs[0]], main.tensors[layer.output]
        others = readers.get(layer.output, [])
        if len(others) != 1 or others[0].name not in CONVOLUTIONS or others[0].kind != "window":
            continue
        # Channels and batches are not padded.
        if image.shape[0] != padded.shape[0] or image.shape[3] != padded.shape[3]:
            continue
        inner = others[0]
        if any(window.before or window.after for window in inner.windows):
            continue
        rows, columns = (
            Window(window.taps, window.stride, pad.before, pad.after)
            for window, pad in zip(inner.windows, layer.windows, strict=True)
        )
        joined[inner.operator] = Layer(
            inner.operator,
            inner.name,
            "window",
            layer.inputs,
            inner.outputs,
            (rows, columns),
            layer.operator,
            work=inner.work,
        )
    gone = {layer.folded for layer in joined.values()}
    return [joined.get(layer.operator, layer) for layer in layers if layer.operator not in gone]
