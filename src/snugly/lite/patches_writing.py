"""Patches → operators of a `.tflite` file: SLICE, PAD, CONCATENATION and the layers themselves."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from snugly.lite.patches_layers import SAME, VALID, Layer, same_padding
from snugly.lite.patches_stage import Patches, Stage, cut
from snugly.lite.rewriting import CONCATENATION_OPTIONS, NewOperator
from snugly.lite.rewriting_layout import Fields, Number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.lite.patches_stage import Patch, Step
    from snugly.lite.rewriting import Rewriting

# The version of each operator that first takes a type; op_version.cc, LiteRT 2.3.
VERSIONS: Final = {
    "SLICE": {"FLOAT32": 1, "INT8": 2, "INT16": 4},
    "PAD": {"FLOAT32": 1, "INT8": 2, "INT16": 3},
    "PADV2": {"FLOAT32": 1, "INT8": 2, "INT16": 3},
    "CONCATENATION": {"FLOAT32": 1, "INT8": 2, "INT16": 3},
}
LOWEST: Final = {
    "FLOAT32": struct.pack("<f", -3.4028234663852886e38),
    "INT8": struct.pack("<b", -128),
    "INT16": struct.pack("<h", -32768),
}
"""What never is a maximum, as a maximum over nothing is in the kernels."""


def write_plain(rewriting: Rewriting, layer: Layer) -> None:
    """A layer that is computed at once: as it was, or without its PAD where the kernel pads so."""
    if layer.folded is None:
        rewriting.keep(layer.operator)
        return
    if not is_padded_by_kernel(rewriting, layer):
        rewriting.keep(layer.folded)
        rewriting.keep(layer.operator)
        return
    write_layer(rewriting, layer, [layer.inputs[0]], layer.output, SAME)


def is_padded_by_kernel(rewriting: Rewriting, layer: Layer) -> bool:
    """Whether a PAD that was joined to a convolution can be its padding SAME."""
    shape = rewriting.model.main.tensors[layer.inputs[0]].shape
    pads = [(window.before, window.after) for window in layer.windows]
    sizes = (shape[1], shape[2])
    own = [same_padding(size, window) for size, window in zip(sizes, layer.windows, strict=True)]
    return layer.folded is not None and pads == own


def write_stage(rewriting: Rewriting, stage: Stage, rows: int, columns: int) -> None:
    """All patches of a stage, and what joins them."""
    main = rewriting.model.main
    patches = Patches(stage, main)
    shape = main.tensors[stage.output].shape
    strips: list[int] = []
    alone = rows * columns == 1
    for row in cut(shape[1], rows):
        parts = [
            _write_patch(
                rewriting, stage, patches.patch((row, column)), stage.output if alone else None
            )
            for column in cut(shape[2], columns)
        ]
        if columns == 1:
            strips.append(parts[0])
            continue
        extent = (shape[0], row[1] - row[0], shape[2], shape[3])
        whole = rows == 1
        strip = stage.output if whole else rewriting.tensor(stage.output, extent, "strip")
        strips.append(_join(rewriting, parts, 2, strip))
    if rows > 1:
        _join(rewriting, strips, 1, stage.output)


def _join(rewriting: Rewriting, parts: Sequence[int], axis: int, output: int) -> int:
    options = Fields({0: Number("i", axis)})
    version = VERSIONS["CONCATENATION"][rewriting.type_of(output)]
    rewriting.operators.append(
        NewOperator(
            [*parts],
            [output],
            name="CONCATENATION",
            version=version,
            options=(CONCATENATION_OPTIONS, options),
        )
    )
    return output


def _version(rewriting: Rewriting, name: str, tensor: int) -> int:
    return VERSIONS[name][rewriting.model.main.tensors[tensor].type.name]


def _write_patch(rewriting: Rewriting, stage: Stage, patch: Patch, output: int | None) -> int:
    numbers: list[int] = []
    for number, step in enumerate(patch.steps):
        inputs = [numbers[index] if index >= 0 else -1 - index for index in step.inputs]
        if output is not None and number == len(patch.steps) - 1:
            made = output
        else:
            made = rewriting.tensor(step.like, step.shape, "patch")
        numbers.append(made)
        if step.layer is None:
            _write_new(rewriting, step, inputs[0], made, stage)
        elif step.layer.kind == "pad":
            _write_pad(rewriting, step, step.layer, inputs[0], made)
        else:
            write_layer(rewriting, step.layer, inputs, made, step.padding)
    return numbers[-1]


def _write_new(rewriting: Rewriting, step: Step, value: int, made: int, stage: Stage) -> None:
    """A SLICE, or padding that a kernel cannot do itself."""
    version = _version(rewriting, step.name, step.like)
    if step.name == "SLICE":
        sizes = [-1] * len(step.shape)  # -1: all that there is, of whatever batch
        for axis in stage.axes[step.like]:
            sizes[axis] = step.shape[axis]
        inputs = [value, rewriting.integers(step.begin), rewriting.integers(sizes)]
    else:
        inputs = [value, rewriting.integers((0, 0, *step.pads, 0, 0), (4, 2))]
        if step.name == "PADV2":
            kind = rewriting.model.main.tensors[step.like].type.name
            inputs.append(rewriting.scalar(step.like, LOWEST[kind]))
    rewriting.operators.append(NewOperator(inputs, [made], name=step.name, version=version))


def _write_pad(rewriting: Rewriting, step: Step, layer: Layer, value: int, made: int) -> None:
    """A PAD of the model, with as much of its padding as this patch has."""
    old = rewriting.model.main.operators[layer.operator]
    amounts = rewriting.constant_integers(old.inputs[1]) or ()
    pads = rewriting.integers((*amounts[:2], *step.pads, *amounts[6:]), (4, 2))
    rewriting.operators.append(NewOperator([value, pads], [made], layer.operator))


def write_layer(
    rewriting: Rewriting, layer: Layer, values: Sequence[int], made: int, padding: int | None
) -> None:
    """A layer of the model on other tensors; constants stay what they are.

    `padding` is that of the kernel, where it is to be another than before.
    """
    old = rewriting.model.main.operators[layer.operator]
    replaced = [*old.inputs]
    if layer.kind == "window":
        replaced[0] = values[0]
    else:
        given = iter(values)
        replaced = [next(given) if index in layer.inputs else index for index in old.inputs]
    assert padding in {None, SAME, VALID}
    rewriting.operators.append(NewOperator(replaced, [made], layer.operator, padding))
