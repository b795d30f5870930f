"""What is derived from a trace's events."""

from __future__ import annotations

from tests.accuracy.trace import (
    Allocation,
    Trace,
    copied_from_host,
    live_at_end,
    requested_rise,
)


def event(
    kind: str, addr: int, requested: int, allocated: int = 256, tf_op: str = "op"
) -> Allocation:
    return Allocation(0, 1, kind, requested, allocated, 0, addr, tf_op, "", "output", "float32", "")


def test_what_was_not_freed_is_live_at_the_end() -> None:
    # GIVEN two tensors, the first freed and its address used again
    events = (
        event("alloc", 1, 100),
        event("alloc", 2, 50),
        event("free", 1, 100),
        event("alloc", 1, 10, 512),
    )

    # WHEN the trace ends
    requested, allocated = live_at_end(Trace(events, ()))

    # THEN the second and the third are live
    assert (requested, allocated) == (60, 768)


def test_the_rise_starts_from_what_was_live_before_the_trace() -> None:
    # GIVEN a step that first frees 30 bytes made before it, then needs 100
    events = (event("free", 9, 30), event("alloc", 1, 100), event("free", 1, 100))

    # WHEN the highest point is asked for
    rise = requested_rise(Trace(events, ()))

    # THEN the freed bytes count against it
    assert rise == 70


def test_a_step_that_only_frees_does_not_rise() -> None:
    assert requested_rise(Trace((event("free", 9, 30),), ())) == 0


def test_what_no_op_asked_for_was_copied_from_the_host() -> None:
    events = (event("alloc", 1, 100, tf_op=""), event("alloc", 2, 50), event("free", 1, 100))
    assert copied_from_host(Trace(events, ())) == 100
