"""Less padding: a PAD in front of a convolution that pads no more than the convolution reads.

A convolution with a stride may never reach the last rows and columns of what was padded for it;
those are not padded then. Where what is left is the padding that the kernel takes for SAME, the PAD
goes altogether. Sums stay the same to the bit: the kernels leave out what lies beside the image,
and what a PAD puts there adds zero (its value is the zero point, or 0.0 times a finite weight).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from snugly.lite.patches_layers import SAME, layers_of, same_padding
from snugly.lite.patches_writing import write_layer
from snugly.lite.rewriting import NewOperator, Rewriting
from snugly.readers.tflite import read_tflite

if TYPE_CHECKING:
    from snugly.lite.patches_layers import Layer

Paddings = tuple[tuple[int, int], tuple[int, int]]  # before and after: of rows, of columns


def with_less_padding(source: bytes, *, floats: bool = True) -> tuple[bytes, str] | None:
    """The model with less padding, and what became of it; None where there is nothing to leave out.

    Only PADs that one convolution alone reads, of rows and columns, with sizes that the file
    declares. Not for a file whose custom operators may depend on its plan. Without `floats`, no PAD
    of floats goes as a whole: kernels that add in another order may give a zero another sign.
    """
    model = read_tflite(source)
    if model.is_bound or all(operator.name != "PAD" for operator in model.main.operators):
        return None
    rewriting = Rewriting(source)
    layers = layers_of(rewriting)
    gone = less = 0
    for layer in layers:
        if layer.folded is None:
            rewriting.keep(layer.operator)
            continue
        needed = _needed(rewriting, layer)
        if _is_same(rewriting, layer, needed, floats=floats):
            write_layer(rewriting, layer, [layer.inputs[0]], layer.output, SAME)
            gone += 1
        elif needed != _declared(layer):
            _write_padded(rewriting, layer, needed)
            less += 1
        else:
            rewriting.keep(layer.folded)
            rewriting.keep(layer.operator)
    if not gone + less:
        return None
    parts: list[str] = []
    if gone:
        parts.append(f"{gone} PAD {_plural(gone)} became the padding of the next convolution")
    if less:
        parts.append(f"{less} PAD {_plural(less)} left out what the next convolution never reads")
    return rewriting.finish(), "; ".join(parts)


def _plural(count: int) -> str:
    return "operator" if count == 1 else "operators"


def _declared(layer: Layer) -> Paddings:
    rows, columns = layer.windows
    return (rows.before, rows.after), (columns.before, columns.after)


def _needed(rewriting: Rewriting, layer: Layer) -> Paddings:
    """The padding without the rows and columns behind the last that is read."""
    tensors = rewriting.model.main.tensors
    image, output = tensors[layer.inputs[0]].shape, tensors[layer.output].shape
    found: list[tuple[int, int]] = []
    for axis, window in enumerate(layer.windows, start=1):
        read = (output[axis] - 1) * window.stride + window.taps
        unread = image[axis] + window.before + window.after - read
        found.append((window.before, window.after - min(window.after, unread)))
    return found[0], found[1]


def _is_same(rewriting: Rewriting, layer: Layer, needed: Paddings, *, floats: bool) -> bool:
    """Whether a padding is the one that the kernel takes for SAME, and adds nothing to any sum."""
    main = rewriting.model.main
    image, output = main.tensors[layer.inputs[0]], main.tensors[layer.output]
    for axis, window in enumerate(layer.windows, start=1):
        if output.shape[axis] != -(-image.shape[axis] // window.stride):
            return False
        if needed[axis - 1] != same_padding(image.shape[axis], window):
            return False
    if image.type.name != "FLOAT32":
        return True
    weights = rewriting.constant(main.operators[layer.operator].inputs[1])
    return floats and weights is not None and bool(np.isfinite(np.frombuffer(weights, "<f4")).all())


def _write_padded(rewriting: Rewriting, layer: Layer, needed: Paddings) -> None:
    """The PAD with other amounts, and its convolution."""
    assert layer.folded is not None
    main = rewriting.model.main
    shape = list(main.tensors[layer.inputs[0]].shape)
    for axis, amounts in enumerate(needed, start=1):
        shape[axis] += sum(amounts)
    amounts = rewriting.integers((0, 0, *needed[0], *needed[1], 0, 0), (4, 2))
    padded = rewriting.tensor(main.operators[layer.folded].outputs[0], shape, "padded")
    rewriting.operators.append(NewOperator([layer.inputs[0], amounts], [padded], layer.folded))
    write_layer(rewriting, layer, [padded], layer.output, None)
