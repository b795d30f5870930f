"""Examples a few at a time, where the activations of all of them would break the budget.

That gives the derivative of the function as it is only if no example's output depends on how many
others there are, or on which. It is found out at this very x: outputs and their changes in a random
direction must be those of all examples at once or, where that does not fit, of batches of twice the
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
    from collections.abc import Sequence

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
            program = _tangents(about, wide if wide < count else 0)
            ahead = about.of_batch(wide if wide < count else 0).subject.activations
            if transient_of(program, None, ahead)[0] > limit:
                continue
            few = about.of_batch(batch)
            if examples.mixing(few, part_of(leaves, 0, batch), batch, limit) is not None:
                return None
            if not _agree(about, leaves, count, batch, wide):
                return None
        except MemoryLimitExceeded:
            continue
        except Exception:  # noqa: BLE001 - forward mode raises whatever its operations do
            return None
        if wide == count:
            return ""
        return f", which was found in batches of {wide}, since all at once do not fit"
    return _TOO_LARGE


def _agree(about: Known, leaves: Sequence[Any], count: int, batch: int, wide: int) -> bool:
    """Whether outputs and their changes are the same in small batches as in wide ones."""
    directions = _directions(about.subject)
    small = _tangents(about, batch)
    large = _tangents(about, wide if wide < count else 0)
    for first in range(0, count, wide):
        start = min(first, count - wide)
        expected = _run(large, leaves, directions, start, wide)
        for inner in range(0, wide, batch):
            place = min(inner, wide - batch)
            found = _run(small, leaves, directions, start + place, batch)
            for one, other in zip(found, expected, strict=True):
                if not _close(one, other[place : place + batch]):
                    return False
    return True


def _run(
    program: Any, leaves: Sequence[Any], directions: Sequence[Any], start: int, batch: int
) -> list[np.ndarray]:
    outputs, tangents = program(part_of(leaves, start, batch), part_of(directions, start, batch))
    return [tensor.numpy() for tensor in (*outputs, *tangents)]


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    tolerance = _TOLERANCES[np.abs(one[:0]).dtype.itemsize]
    largest = float(np.abs(other).max(initial=0.0))
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * largest))


def _directions(subject: Subject) -> list[Any]:
    """A random change of the inputs."""
    tf = tensorflow()
    return [
        tf.cast(tf.random.stateless_uniform(leaf.shape, (7, number), 0.5, 1.5), leaf.dtype)
        for number, leaf in enumerate(subject.sources)
    ]


def _tangents(about: Known, batch: int) -> Any:
    """The program (inputs, directions) → outputs, and how they change."""
    part = about.of_batch(batch)
    return part.program("tangents", lambda: _program(part.subject))


def _program(subject: Subject) -> Any:
    tf = tensorflow()

    def tangents(leaves: list[Any], directions: list[Any]) -> Any:
        with tf.autodiff.ForwardAccumulator(leaves, directions) as accumulator:
            outputs = subject.call(leaves)
        zero = tf.UnconnectedGradients.ZERO
        return outputs, [accumulator.jvp(output, zero) for output in outputs]

    specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in subject.inputs]
    return tf.function(tangents, autograph=False).get_concrete_function(specs, specs)
