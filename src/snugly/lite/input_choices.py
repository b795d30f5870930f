"""Smaller images that a model could be given: which sizes, and whether it works at them.

A size is offered only if every operator still does what it did, and if the outputs keep their
shapes: what calls the model expects them. Sizes go down by eighths to a quarter of rows and
columns, where a network sees little of what it was made for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from snugly.errors import InputError
from snugly.lite.input_size import resized
from snugly.readers.tflite import read_tflite

RANK: Final = 4
PARTS: Final = (7, 6, 5, 4, 3, 2)
"""Eighths of rows and columns, largest first."""
EIGHTHS: Final = 8
SMALLEST: Final = 8  # rows or columns of an image


@dataclass(frozen=True, slots=True)
class SmallerInput:
    """The model for one size; without data, why it does not work there."""

    data: bytes | None
    name: str
    note: str


def sizes_of(source: bytes) -> list[SmallerInput] | str:
    """The model for smaller images, largest first; a sentence where there is no such model."""
    main = read_tflite(source).main
    images = [
        main.tensors[index]
        for index in main.inputs
        if index >= 0 and len(main.tensors[index].shape) == RANK
    ]
    if len(images) != 1:
        found = "no input" if not images else f"{len(images)} inputs"
        return f"the model has {found} of four dimensions, where one image is needed"
    rows, columns = _sides(images[0].shape)
    if min(rows, columns) < 2 * SMALLEST:
        return f"its images of {rows}×{columns} are small already"
    shapes = tuple(main.tensors[index].shape for index in main.outputs)
    made: list[SmallerInput] = []
    reasons: list[str] = []
    for part in PARTS:
        height, width = rows * part // EIGHTHS, columns * part // EIGHTHS
        name = f"images of {height}×{width} instead of {rows}×{columns}"
        try:
            found = resized(source, height, width)
        except InputError as error:
            reasons.append(error.message)
            continue
        if found.output_shapes != shapes:
            reasons.append(f"outputs would change their shape: {found.note.partition('; ')[2]}")
            continue
        made.append(SmallerInput(found.data, name, found.note))
    return made or reasons[0]


def _sides(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of an image; channels come first where they are the few."""
    few = 4
    return (shape[2], shape[3]) if shape[1] <= few < shape[3] else (shape[1], shape[2])
