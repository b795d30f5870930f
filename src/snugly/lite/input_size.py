"""resized: the same `.tflite` model for images of another size, or why there is none.

LiteRT resizes any input without complaint, and where a model has a size written into it the
answer is nonsense: a RESHAPE that turns a larger image into more examples, a dense layer that
reads one image as four. Here every shape is followed through the model, and an operator that would
no longer do what it did is named. Smaller images change what a network sees: its accuracy has to
be measured again, and mostly it has to be trained again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from snugly.errors import InputError
from snugly.lite.input_size_rules import BrokenShapeError, Call
from snugly.lite.input_size_shapes import shapes_of, values_of
from snugly.lite.patches_ranking import MicroNeed, micro_need
from snugly.lite.rewriting import Rewriting
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.structures import HOST

if TYPE_CHECKING:
    from snugly.lite.input_size_rules import Shape
    from snugly.readers.tflite import LiteOperator
    from snugly.readers.tflite.structures import Target

RANK = 4


@dataclass(frozen=True, slots=True)
class Resized:
    """The model for another input size."""

    data: bytes
    before: MicroNeed
    after: MicroNeed
    output_shapes: tuple[tuple[int, ...], ...]
    note: str
    safety: str = "changes-training"


def resized(
    model: bytes,
    height: int,
    width: int,
    *,
    input_name: str | None = None,
    target: Target = HOST,
) -> Resized:
    """Rewrite a `.tflite` model for images of another height and width.

    Args:
        model: the bytes of the file.
        height: rows of the image.
        width: columns of the image.
        input_name: which input is the image, where there are several.
        target: what TFLite Micro is compiled for, for `before` and `after`.

    Raises:
        InputError: SNG576 where there is no image to resize, SNG577 where the model would break;
            the operator is named.
    """
    rewriting = Rewriting(bytes(model))
    main = rewriting.model.main
    if rewriting.model.is_bound:
        raise InputError(
            "the model was compiled for an accelerator: custom operators may depend on the offline"
            " memory plan in the file",
            code="SNG577",
            hint="resize the model before it is compiled",
        )
    image = _image(rewriting, input_name)
    shape = _changed(rewriting, image, height, width)
    values = _check_declared(rewriting)
    shapes = _Following(rewriting, {image: shape}, values).run()
    for operator in range(len(main.operators)):
        rewriting.keep(operator)
    for index, new in shapes.items():
        if new != main.tensors[index].shape:
            rewriting.reshape(index, new)
    data = rewriting.finish()
    outputs = tuple(shapes.get(index, main.tensors[index].shape) for index in main.outputs)
    changes = [
        f"output {main.tensors[index].name!r} is {_text(new)} instead of"
        f" {_text(main.tensors[index].shape)}"
        for index, new in zip(main.outputs, outputs, strict=True)
        if new != main.tensors[index].shape
    ]
    notes = ["measure the accuracy again: the network was trained for another size", *changes]
    if rewriting.model.offline_offsets is not None:
        notes.append("the offline memory plan of the file was for other sizes and is dropped")
    return Resized(
        data,
        micro_need(rewriting.model, target),
        micro_need(read_tflite(data), target),
        outputs,
        "; ".join(notes),
    )


def _text(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


def _image(rewriting: Rewriting, name: str | None) -> int:
    main = rewriting.model.main
    images = [
        index for index in main.inputs if index >= 0 and len(main.tensors[index].shape) == RANK
    ]
    if name is not None:
        images = [index for index in images if main.tensors[index].name == name]
    if len(images) == 1:
        return images[0]
    names = ", ".join(repr(main.tensors[index].name) for index in main.inputs if index >= 0)
    if not images:
        raise InputError(
            f"the model has no image to resize: its inputs are {names or 'none'}"
            if name is None
            else f"the model has no input {name!r} of four dimensions; it has {names}",
            code="SNG576",
        )
    raise InputError(
        f"the model has several images: {names}",
        code="SNG576",
        hint="say which one with input_name",
    )


def _changed(rewriting: Rewriting, image: int, height: int, width: int) -> Shape:
    """The new shape of the image; rows and columns are where the first operator takes them."""
    main = rewriting.model.main
    shape = list(main.tensors[image].shape)
    rows, columns = 1, 2
    for operator in main.operators:
        if image not in operator.inputs:
            continue
        order = (
            rewriting.constant_integers(operator.inputs[1])
            if operator.name == "TRANSPOSE" and len(operator.inputs) > 1
            else None
        )
        if order is not None and sorted(order) == list(range(RANK)):
            rows, columns = order[1], order[2]
    if min(height, width) < 1 or max(height, width) > 1 << 16:
        raise InputError(
            f"an image of {height}×{width} cannot be made",
            code="SNG576",
            hint=f"the model is made for {shape[rows]}×{shape[columns]}",
        )
    shape[rows], shape[columns] = height, width
    return tuple(shape)


def _check_declared(rewriting: Rewriting) -> dict[int, tuple[int, ...] | None]:
    """Followed with its own size, the model must come out as the file declares it.

    Gives the integers that it computes on the way.
    """
    main = rewriting.model.main
    followed = _Following(rewriting, {index: main.tensors[index].shape for index in main.inputs})
    for index, shape in followed.run(check=False).items():
        if shape != main.tensors[index].shape:
            raise InputError(
                f"the shape {_text(main.tensors[index].shape)} that the file declares for"
                f" {main.tensors[index].name!r} is not the one that its operators give,"
                f" {_text(shape)}",
                code="SNG577",
                hint="convert the model again with the size that is wanted",
            )
    return followed.values


class _Following:
    """Follows shapes through the operators of the first subgraph."""

    def __init__(
        self,
        rewriting: Rewriting,
        given: dict[int, Shape],
        declared: dict[int, tuple[int, ...] | None] | None = None,
    ) -> None:
        self._rewriting = rewriting
        self._declared = declared
        self._tensors = rewriting.model.main.tensors
        self._shapes = dict(given)
        self.values: dict[int, tuple[int, ...] | None] = {}
        self._changed = {
            index for index, shape in given.items() if shape != self._tensors[index].shape
        }

    def run(self, *, check: bool = True) -> dict[int, Shape]:
        """The shape of every tensor that was followed."""
        for number, operator in enumerate(self._rewriting.model.main.operators):
            why = ""
            try:
                self._follow(number, operator, check=check)
            except BrokenShapeError as error:
                why = str(error)
            except (IndexError, ValueError, TypeError, ZeroDivisionError):
                why = "has tensors that its kernel does not take"
            if why and any(index in self._changed for index in operator.inputs):
                raise self._broken(operator, why)
        return self._shapes

    def _shape(self, index: int) -> Shape:
        return self._shapes.get(index, self._tensors[index].shape)

    def _value(self, index: int) -> tuple[int, ...] | None:
        if index not in self.values:
            self.values[index] = self._rewriting.constant_integers(index)
        return self.values[index]

    def _follow(self, number: int, operator: LiteOperator, *, check: bool) -> None:
        call = Call(
            self._rewriting,
            number,
            operator,
            [None if index < 0 else self._shape(index) for index in operator.inputs],
            [None if index < 0 else self._value(index) for index in operator.inputs],
            [None if index < 0 else self._tensors[index].shape for index in operator.inputs],
            self._tensors[operator.outputs[0]].shape
            if max(operator.outputs, default=-1) >= 0
            else (),
        )
        touched = any(index in self._changed for index in operator.inputs)
        outputs = [index for index in operator.outputs if index >= 0]
        made = shapes_of(call)
        if made is None:
            if touched:
                raise BrokenShapeError("is not known here, and would get another size")
            return
        for index, shape in zip(outputs, made, strict=True):
            if check:
                self._check(shape, self._tensors[index].shape)
            self._shapes[index] = shape
            value = values_of(call)
            if value is not None:
                self.values[index] = value
            moved = self._declared is not None and self._declared.get(index) != value
            if shape != self._tensors[index].shape or moved:
                self._changed.add(index)

    def _check(self, shape: Shape, declared: Shape) -> None:
        """The number of dimensions and the batch stay; only rows and columns may change."""
        if len(shape) != len(declared) or (shape and shape[0] != declared[0]):
            raise BrokenShapeError(f"would make {_text(shape)} instead of {_text(declared)}")

    def _broken(self, operator: LiteOperator, why: str) -> InputError:
        name = next(
            (
                self._tensors[index].name.partition(";")[0]
                for index in operator.outputs
                if index >= 0
            ),
            "",
        )
        return InputError(
            f"the model does not work at this input size: {operator.name} ({name!r}) {why}",
            code="SNG577",
            hint="build and convert the model for this size, and train it for it; layers that fix"
            " a size (Flatten, Reshape, pooling over the whole image) are what stands in the way",
        )
