"""A model that takes smaller pictures: the same layers, with copies of their weights.

Convolutions do not mind how large a picture is; a dense layer behind `Flatten` does, and so does a
`Reshape`. Such models, and those whose outputs would change their shape, are left out, with a
reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError
from snugly.training.compiling import compile_anew
from snugly.training.flattening import flat
from snugly.training.segments import graph_of

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARES: Final = (0.75, 0.5, 0.25)
"""Of each side of a picture, one after the other."""
_STEPS: Final = (32, 16, 8, 4, 2, 1)
_TIMES: Final = 4
"""Sides stay multiples of the first of these that they are at least so many times: strides divide
them."""
_PICTURE: Final = 4
"""Dimensions of a batch of pictures."""


def smaller_sides(model: Any) -> Iterator[tuple[int, int]]:
    """The heights and widths to try, from the largest.

    Raises:
        InputError: What the model takes is no picture of a size that is known.
    """
    shape, axis = _picture(model)
    height, width = (int(size or 0) for size in shape[axis : axis + 2])
    tried = {(height, width)}
    for share in SHARES:
        sides = _scaled(height, share), _scaled(width, share)
        if sides not in tried:
            tried.add(sides)
            yield sides


def with_smaller_input(model: Any, sides: tuple[int, int]) -> Any:
    """A copy of a model for pictures of other sides, compiled anew.

    Raises:
        InputError: Its weights or its outputs depend on the size.
    """
    import keras

    source = graph_of(flat(model))
    shape, axis = _picture(model)
    entry = keras.Input(
        batch_shape=(*shape[:axis], *sides, *shape[axis + 2 :]),
        dtype=source.inputs[0].dtype,
        name=source.inputs[0].name,
    )
    try:
        made = keras.models.clone_model(source, input_tensors=entry)
    except (TypeError, ValueError, NotImplementedError) as problem:
        raise _refusal(model, sides, str(problem).splitlines()[0][:200]) from problem
    pairs = list(zip(made.weights, source.weights, strict=False))
    differing = [new.path for new, old in pairs if new.shape != old.shape]
    if differing or len(made.weights) != len(source.weights):
        raise _refusal(model, sides, f"{(differing or ['a weight'])[0]} depends on their size")
    if [tuple(t.shape) for t in made.outputs] != [tuple(t.shape) for t in source.outputs]:
        raise _refusal(model, sides, "its outputs would be of another shape, too")
    for new, old in pairs:
        new.assign(old)
    compile_anew(made, model)
    return made


def smaller_example(
    model: Any, example: tuple[Any, ...], sides: tuple[int, int]
) -> tuple[Any, ...]:
    """The same arguments with pictures of other sides; none stand for what the model takes."""
    import tensorflow as tf

    if not example:
        return example
    _, axis = _picture(model)
    shape = list(example[0].shape)
    shape[axis : axis + 2] = sides
    return tf.TensorSpec(shape, example[0].dtype), *example[1:]


def _picture(model: Any) -> tuple[tuple[int | None, ...], int]:
    """The shape of the one input, and where the two sides of its pictures are."""
    inputs = graph_of(model).inputs
    shape = tuple(inputs[0].shape) if len(inputs) == 1 else ()
    if len(shape) != _PICTURE:
        raise InputError(f"{model.name} does not take pictures alone", code="SNG549")
    axis = 2 if _is_channels_first(model) else 1
    if None in shape[axis : axis + 2]:
        raise InputError(f"{model.name} takes pictures of any size", code="SNG549")
    return shape, axis


def _is_channels_first(model: Any) -> bool:
    formats = (getattr(layer, "data_format", None) for layer in flat(model).layers)
    return "channels_first" in formats


def _scaled(side: int, share: float) -> int:
    step = next((n for n in _STEPS if side % n == 0 and side >= _TIMES * n), 1)
    return max(1, int(side * share) // step) * step


def _refusal(model: Any, sides: tuple[int, int], reason: str) -> InputError:
    height, width = sides
    return InputError(
        f"{model.name} cannot take pictures of {height}×{width}: {reason}", code="SNG549"
    )
