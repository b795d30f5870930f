"""Whether a function mixes examples: proven from its graph or found by asking it, never assumed.

The derivative of example i's output by example j's input is zero for all i ≠ j exactly when a
random weighting of the outputs of some examples has no gradient at any other example. Each pair is
told apart by a bit of its numbers, so 2·log₂ b products settle it for b examples, at this very x.
A derivative that is not zero would have to cancel exactly, in every entry, under random weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError, MemoryLimitExceeded
from snugly.jacobians.batch_axis import keeps_examples_apart
from snugly.jacobians.memory import transient_of
from snugly.jacobians.subject import tensorflow
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.jacobians.known import Known
    from snugly.jacobians.subject import Subject


MIXED: Final = "SNG525"


def refusal(pair: tuple[int, int]) -> InputError:
    """The error for a function whose examples depend on each other, where they must not."""
    return InputError(
        f"the function mixes examples: output {pair[0]} changes with input {pair[1]}, so a result"
        " of shape (b, m, n) would leave derivatives out",
        code=MIXED,
    )


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


def mixing(
    known: Known, leaves: Sequence[Any], count: int, limit: int | None = None
) -> tuple[int, int] | None:
    """Two examples of which the first's output depends on the second's input, if there are.

    Raises:
        MemoryLimitExceeded: Finding out would take more than the limit.
    """
    if count == 1 or known.program(
        ("apart", count), lambda: keeps_examples_apart(known.subject, count)
    ):
        return None
    way = _way(known, leaves, count, limit)
    numbers = np.arange(count)
    for bit in range((count - 1).bit_length()):
        for side in (0, 1):
            chosen = (numbers >> bit & 1) == side
            wrong = np.flatnonzero(way(chosen, (bit, side)) & ~chosen)
            if len(wrong):
                one = _first_of(way, np.flatnonzero(chosen), int(wrong[0]), count)
                other = int(wrong[0])
                return (one, other) if way.backwards else (other, one)
    return None


@dataclass(frozen=True, slots=True)
class _Way:
    """How it is asked which examples the chosen ones touch."""

    program: Any
    leaves: Sequence[Any]
    backwards: bool
    """From outputs to inputs, which keeps activations, or from inputs to outputs."""

    def __call__(self, chosen: np.ndarray, seed: tuple[int, int]) -> np.ndarray:
        tf = tensorflow()
        return self.program(list(self.leaves), tf.constant(chosen), tf.constant(seed)).numpy()


def _way(known: Known, leaves: Sequence[Any], count: int, limit: int | None) -> _Way:
    """Backwards, which every operation has; forwards where activations would break the limit."""
    needed = []
    for backwards, make in ((True, _pulling), (False, _pushing)):
        key = ("mixing", count, backwards)
        try:
            program = known.program(key, lambda make=make: make(known.subject, count))
            if limit is None:
                return _Way(program, leaves, backwards)
            ahead = 0 if backwards else known.subject.activations
            memory = known.program(
                (*key, "memory"),
                lambda program=program, ahead=ahead: _transient(program, leaves, count, ahead),
            )
        except Exception:
            if backwards:
                raise
            break  # forward mode has no form of some operation
        if memory <= limit:
            return _Way(program, leaves, backwards)
        needed.append(memory)
    least = min(needed)
    raise MemoryLimitExceeded(
        f"finding out whether examples mix takes {Size(least)}; {Size(limit or 0)} was given",
        code="SNG521",
        hint=f"`memory={least}` is enough",
    )


def _transient(program: Any, leaves: Sequence[Any], count: int, ahead: int) -> int:
    tf = tensorflow()

    def run(leaves: list[Any], _: Any) -> list[Any]:
        return [program(leaves, tf.constant([True] * count), tf.constant([0, 0]))]

    try:
        return transient_of(program, None, ahead)[0]
    except Exception:  # noqa: BLE001 - whatever cannot be read is run
        return transient_of(run, leaves)[0]


def _pulling(subject: Subject, count: int) -> Any:
    """(inputs, which examples, seed) → where a random weighting of their outputs has gradients."""
    tf = tensorflow()

    def touched(leaves: list[Any], chosen: Any, seed: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            outputs = subject.call(leaves)
        weights = _drawn(outputs, chosen, seed)
        return _not_zero(tape.gradient(outputs, leaves, weights), count)

    return _compiled(touched, subject, count)


def _pushing(subject: Subject, count: int) -> Any:
    """(inputs, which examples, seed) → where outputs change with a random change of theirs."""
    tf = tensorflow()

    def touched(leaves: list[Any], chosen: Any, seed: Any) -> Any:
        directions = _drawn(leaves, chosen, seed)
        with tf.autodiff.ForwardAccumulator(leaves, directions) as accumulator:
            outputs = subject.call(leaves)
        return _not_zero([accumulator.jvp(output) for output in outputs], count)

    return _compiled(touched, subject, count)


def _drawn(tensors: Sequence[Any], chosen: Any, seed: Any) -> list[Any]:
    """Random numbers for the chosen examples, zeros for the others."""
    tf = tensorflow()
    found = []
    for number, tensor in enumerate(tensors):
        kind = tensor.dtype.real_dtype
        drawn = tf.random.stateless_uniform(tensor.shape, seed + number, 0.5, 1.5, kind)
        mask = tf.reshape(chosen, (-1,) + (1,) * (tensor.shape.rank - 1))
        found.append(tf.cast(tf.where(mask, drawn, tf.zeros((), kind)), tensor.dtype))
    return found


def _not_zero(tensors: Sequence[Any], count: int) -> Any:
    tf = tensorflow()
    found = tf.zeros((count,), tf.bool)
    for tensor in tensors:
        if tensor is not None:
            flat = tf.reshape(tf.convert_to_tensor(tensor), (count, -1))
            # NaN is not equal to zero either: such examples count as touched.
            found |= tf.reduce_any(tf.not_equal(flat, tf.zeros((), flat.dtype)), axis=1)
    return found


def _compiled(touched: Any, subject: Subject, count: int) -> Any:
    tf = tensorflow()
    specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in subject.inputs]
    function = tf.function(touched, autograph=False)
    return function.get_concrete_function(
        specs, tf.TensorSpec((count,), tf.bool), tf.TensorSpec((2,), tf.int32)
    )


def _first_of(way: _Way, candidates: np.ndarray, wrong: int, count: int) -> int:
    """Halve the examples until one is left that touches the other."""
    while len(candidates) > 1:
        half = candidates[: len(candidates) // 2]
        touched = way(np.isin(np.arange(count), half), (3, 5))
        candidates = half if touched[wrong] else candidates[len(candidates) // 2 :]
    return int(candidates[0])
