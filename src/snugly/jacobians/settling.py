"""Which plan a Jacobian gets: whether its examples mix at this x, and what the machine has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from snugly.devices import host_memory
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.jacobians import examples
from snugly.jacobians.batches import in_batches
from snugly.jacobians.plan import result_bytes
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.jacobians.known import Known
    from snugly.jacobians.plan import Plan, Request

_WORTH_ASKING: Final = 1 << 28
"""Results below this fit any machine that runs TensorFlow."""


def settle(about: Known, request: Request, leaves: Sequence[Any], narrow: Any = None) -> Plan:
    """The plan, once it is known whether examples mix at this x."""
    subject = about.subject
    if not request.whole:
        count = examples.require_examples(subject) if subject.variables is None else 0
        if count:
            return _apart(about, request, leaves, count, narrow)
        return about.plan(replace(request, whole=True), leaves, narrow)
    count = examples.count_of(subject)
    rows = sum(leaf.size for leaf in subject.outputs)
    worthwhile = count > 1 and rows > 8 * (count - 1).bit_length() and not subject.random
    if worthwhile and examples.is_exact(subject) and _places_fit(about, count):
        try:
            return _apart(about, request, leaves, count, narrow)
        except MemoryLimitExceeded:
            pass
        except InputError as error:
            if error.code != examples.MIXED:
                raise
    return about.plan(request, leaves, narrow)


def _apart(about: Known, request: Request, leaves: Sequence[Any], count: int, narrow: Any) -> Plan:
    """The plan for examples that do not mix; an error where they do."""
    refused: MemoryLimitExceeded | None = None
    chosen: Plan | None = None
    try:
        chosen = about.plan(replace(request, examples=count), leaves, narrow)
    except MemoryLimitExceeded as error:
        refused = error
    if chosen is None or chosen.is_way_out:
        batched = in_batches(about, request, leaves, count, narrow)
        if batched is not None:
            return batched
    if chosen is None:
        assert refused is not None
        raise refused
    limit = request.budget if request.budget is not None else request.available
    pair = examples.mixing(about, leaves, count, limit)
    if pair is not None:
        raise examples.refusal(pair)
    return chosen


def _places_fit(about: Known, count: int) -> bool:
    """Whether rows with the zeros between them can be numbered in 32 bits, as the loop does."""
    return all(leaf.size * count < 2**31 for leaf in about.subject.outputs)


def with_available(request: Request, about: Known) -> Request:
    """The request with what this machine has, where no budget is stated and the result is large."""
    if request.budget is not None or result_bytes(about.subject, request) < _WORTH_ASKING:
        return request
    # Rounded down to 256 MiB, so that a second call finds the first one's plan.
    offered = int(host_memory().bytes.times(0.8)) // _WORTH_ASKING * _WORTH_ASKING
    return replace(request, available=Size(offered))
