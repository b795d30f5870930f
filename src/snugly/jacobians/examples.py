"""Whether a function mixes examples: found by asking the function, not assumed.

The derivative of example i's output by example j's input is zero for all i ≠ j exactly when a
random weighting of the outputs of some examples has no gradient at any other example. Each pair is
told apart by a bit of its numbers, so 2·log₂ b products settle it for b examples, at this very x.
A derivative that is not zero would have to cancel exactly, in every entry, under random weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.errors import InputError
from snugly.jacobians.memory import transient_of
from snugly.jacobians.subject import tensorflow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.jacobians.known import Known
    from snugly.jacobians.subject import Subject


def count_of(subject: Subject) -> int:
    """How many examples there are, if first extents agree everywhere; else 0."""
    if subject.variables is not None:
        return 0
    leaves = (*subject.outputs, *subject.sources)
    extents = {leaf.shape[0] if leaf.shape else 0 for leaf in leaves}
    sizes = {leaf.size for leaf in leaves}
    return extents.pop() if len(extents) == 1 and 0 not in sizes else 0


def require_examples(subject: Subject) -> int:
    """How many examples there are, or why that cannot be said."""
    count = count_of(subject)
    if not count:
        shapes = ", ".join(str(leaf.shape) for leaf in (*subject.sources, *subject.outputs))
        raise InputError(
            f"per_example needs inputs and outputs that all begin with the batch, not {shapes}",
            code="SNG529",
            hint="leave per_example out, or add a first axis",
        )
    return count


def is_exact(subject: Subject) -> bool:
    """Whether zeros can be told from small numbers: half precision underflows."""
    leaves = (*subject.outputs, *subject.sources)
    return all(leaf.dtype.size >= 4 for leaf in leaves)  # noqa: PLR2004 - bytes of a float32


def mixing(known: Known, leaves: Sequence[Any], count: int) -> tuple[int, int] | None:
    """Two examples of which the first's output depends on the second's input, if there are."""
    if count == 1:
        return None
    tf = tensorflow()
    program = known.program(("mixing", count), lambda: _program(known.subject, count))
    numbers = np.arange(count)
    for bit in range((count - 1).bit_length()):
        for side in (0, 1):
            chosen = (numbers >> bit & 1) == side
            touched = program(list(leaves), tf.constant(chosen), tf.constant([bit, side])).numpy()
            wrong = np.flatnonzero(touched & ~chosen)
            if len(wrong):
                return _first_of(program, leaves, np.flatnonzero(chosen), int(wrong[0]), count)
    return None


def memory_of_mixing(known: Known, count: int, leaves: Sequence[Any]) -> int:
    """What finding out takes beside inputs and weights."""
    program = known.program(("mixing", count), lambda: _program(known.subject, count))
    return known.program(("mixing memory", count), lambda: _transient(program, leaves))


def refusal(pair: tuple[int, int]) -> InputError:
    """The error for a function that mixes examples where it must not."""
    return InputError(
        f"the function mixes examples: output {pair[0]} changes with input {pair[1]}, so a result"
        " of shape (b, m, n) would leave derivatives out",
        code="SNG525",
    )


def _transient(program: Any, leaves: Sequence[Any]) -> int:
    tf = tensorflow()
    count = program.structured_input_signature[0][1].shape[0]

    def run(leaves: list[Any], _: Any) -> list[Any]:
        return [program(leaves, tf.constant([True] * count), tf.constant([0, 0]))]

    try:
        return transient_of(program, None)[0]
    except Exception:  # noqa: BLE001 - whatever cannot be read is run
        return transient_of(run, leaves)[0]


def _program(subject: Subject, count: int) -> Any:
    """(inputs, which examples, seed) → where a random weighting of theirs has gradients."""
    tf = tensorflow()

    def touched(leaves: list[Any], chosen: Any, seed: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            outputs = subject.call(leaves)
        weights = []
        for number, output in enumerate(outputs):
            kind = output.dtype.real_dtype
            drawn = tf.random.stateless_uniform(output.shape, seed + number, 0.5, 1.5, kind)
            mask = tf.reshape(chosen, (count,) + (1,) * (output.shape.rank - 1))
            weights.append(tf.cast(tf.where(mask, drawn, tf.zeros((), kind)), output.dtype))
        found = tf.zeros((count,), tf.bool)
        for gradient in tape.gradient(outputs, leaves, weights):
            if gradient is not None:
                flat = tf.reshape(tf.convert_to_tensor(gradient), (count, -1))
                # NaN is not equal to zero either: such examples count as touched.
                found |= tf.reduce_any(tf.not_equal(flat, tf.zeros((), flat.dtype)), axis=1)
        return found

    specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in subject.inputs]
    function = tf.function(touched, autograph=False)
    return function.get_concrete_function(
        specs, tf.TensorSpec((count,), tf.bool), tf.TensorSpec((2,), tf.int32)
    )


def _first_of(
    program: Any, leaves: Sequence[Any], candidates: np.ndarray, wrong: int, count: int
) -> tuple[int, int]:
    """Halve the examples until one is left that the other's gradient comes from."""
    tf = tensorflow()
    while len(candidates) > 1:
        half = candidates[: len(candidates) // 2]
        chosen = np.isin(np.arange(count), half)
        touched = program(list(leaves), tf.constant(chosen), tf.constant([3, 5])).numpy()
        candidates = half if touched[wrong] else candidates[len(candidates) // 2 :]
    return int(candidates[0]), wrong
