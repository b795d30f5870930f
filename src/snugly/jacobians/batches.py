"""Examples a few at a time, where the activations of all of them would break the budget.

That gives the derivative of the function as it is only if no example's output depends on how many
others there are, or on which. It is found out at this very x: outputs must be those of all at once
or, where that does not fit, of batches of twice the size; gradients those of batches of half the
size; and within a batch, no example may change with another, exactly.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import MemoryLimitExceeded, SnuglyError
from snugly.jacobians import examples
from snugly.jacobians.computing import part_of
from snugly.jacobians.memory import transient_of
from snugly.jacobians.subject import tensorflow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.jacobians.known import Known
    from snugly.jacobians.plan import Plan, Request
    from snugly.jacobians.subject import Subject

_TOLERANCES: Final = {2: 2e-2, 4: 1e-4, 8: 1e-9}
"""By bytes of a number: batches of other sizes are summed in another order."""
_TOO_LARGE: Final = "finding out does not fit"


def in_batches(
    about: Known, request: Request, leaves: Sequence[Any], count: int, narrow: Any = None
) -> Plan | None:
    """The plan with the largest batch that fits, or None where there is none or examples mix."""
    limit = request.budget if request.budget is not None else request.available
    if limit is None or request.mode == "forward" or about.subject.random:
        return None
    batch = count
    while batch > 1:
        batch = -(-batch // 2)
        part = replace(request, examples=batch, total=count, mode="reverse")
        try:
            plan = about.of_batch(batch).plan(part, part_of(leaves, 0, batch), narrow)
        except MemoryLimitExceeded:
            continue
        except (SnuglyError, ValueError, TypeError, LookupError):
            return None  # the function cannot be called with fewer examples
        note = _independent(about, leaves, count, batch, int(limit))
        if note is _TOO_LARGE:
            continue
        if note is None:
            return None
        why = f"; {batch} examples at a time, since activations of {count} would break the budget"
        return replace(plan, reason=plan.reason + note + why)
    return None


def _independent(
    about: Known, leaves: Sequence[Any], count: int, batch: int, limit: int
) -> str | None:
    """What is to be said about how it is known that they are; None where they are not.

    `_TOO_LARGE` where finding out does not fit either.
    """
    for wide in (count, min(2 * batch, count)):
        try:
            if transient_of(_outputs(about, wide if wide < count else 0), None)[0] > limit:
                continue
            few = about.of_batch(batch)
            if examples.mixing(few, part_of(leaves, 0, batch), batch, limit) is not None:
                return None
            if not _agree(_outputs, about, leaves, count, batch, wide):
                return None
            if not _agree(_gradients, about, leaves, count, -(-batch // 2), batch):
                return None
        except MemoryLimitExceeded:
            continue
        if wide == count:
            return ""
        return f", which was found in batches of {wide}, since all at once do not fit"
    return _TOO_LARGE


def _agree(  # noqa: PLR0913, PLR0917 - two sizes of batches of one thing
    make: Callable[[Known, int], Any],
    about: Known,
    leaves: Sequence[Any],
    count: int,
    batch: int,
    wide: int,
) -> bool:
    """Whether a program gives the same in small batches as in wide ones."""
    small, large = make(about, batch), make(about, wide if wide < count else 0)
    for first in range(0, count, wide):
        start = min(first, count - wide)
        expected = _run(large, leaves, start, wide)
        for inner in range(0, wide, batch):
            place = min(inner, wide - batch)
            found = _run(small, leaves, start + place, batch)
            for one, other in zip(found, expected, strict=True):
                if not _close(one, other[place : place + batch]):
                    return False
    return True


def _run(program: Any, leaves: Sequence[Any], start: int, batch: int) -> list[np.ndarray]:
    return [tensor.numpy() for tensor in program(part_of(leaves, start, batch))]


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    tolerance = _TOLERANCES[np.abs(one[:0]).dtype.itemsize]
    largest = float(np.abs(other).max(initial=0.0))
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * largest))


def _outputs(about: Known, batch: int) -> Any:
    """The program inputs → outputs, for so many examples."""
    part = about.of_batch(batch)
    return part.program("outputs", lambda: _compiled(part.subject, part.subject.call))


def _gradients(about: Known, batch: int) -> Any:
    """The program inputs → gradients of the sum of all outputs, for so many examples."""
    part = about.of_batch(batch)
    tf = tensorflow()

    def gradients(leaves: list[Any]) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            outputs = part.subject.call(leaves)
        zero = tf.UnconnectedGradients.ZERO
        return tape.gradient(outputs, leaves, unconnected_gradients=zero)

    return part.program("gradients", lambda: _compiled(part.subject, gradients))


def _compiled(subject: Subject, body: Callable[[Any], Any]) -> Any:
    tf = tensorflow()
    specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in subject.inputs]
    return tf.function(body, autograph=False).get_concrete_function(specs)
