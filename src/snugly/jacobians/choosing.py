"""Which plan it is to be: rows or columns, how many at a time, activations kept or made again.

Beside the result a chunk of c lines takes m₀ + m₁·c bytes: what all lines share (the activations),
and what each adds. Both come from predicting the traced program for two small chunks; the program
that is chosen is predicted once more before it runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import MemoryLimitExceeded
from snugly.jacobians.lines import Lines, Mode, filling_program, step_program
from snugly.jacobians.memory import OBJECTS, transient_of, transient_of_loop
from snugly.jacobians.plan import WAY_OUT, Plan, Portion, Request, balanced, result_bytes
from snugly.jacobians.recomputing import Recomputed, recomputable, segment_counts
from snugly.jacobians.subject import tensorflow
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.jacobians.subject import Subject

_SHARE: Final = 0.09
"""Without a budget, a chunk may take this share of the result, so that the peak stays under 1.1."""
_SHARE_ON_GPU: Final = 0.13
"""There each chunk costs half a millisecond whatever its size; the peak stays under 1.15."""
_ENOUGH: Final = 32 << 20
"""A chunk that takes so many bytes is taken to be large enough (assumed, not measured)."""
_COMPILING: Final = 40 << 20
"""What TensorFlow's programs take when they are made and first run (10 to 40 MiB were seen) is no
part of a budget, but so much is left free where there is as much."""
_SMALL: Final = 1 << 20
"""A result smaller than this may have as much beside it."""
_LARGEST_CHUNK: Final = 1024
_PROBES: Final = (2, 8)
_SEGMENTS_MARGIN: Final = 1.15
"""Added where activations are made again: peaks of up to 1.18 times the predicted were measured (24
dense layers in 4 segments), and 1.1 is there already."""
_FORWARD_COST: Final = 1.5
"""A column takes about so many times as long as a row (assumed, not measured)."""
_LONGEST_WAY_OUT: Final = 100
"""Columns that take more than so many times as long as the rows that do not fit are no way out:
nobody who asks for 48 rows means a million columns. Whoever does says `mode="forward"`."""


def choose(
    subject: Subject,
    request: Request,
    leaves: Sequence[Any] | None = None,
    narrow: Any = None,
    kind: Callable[..., Lines] = Lines,
) -> Plan:
    """The fastest plan that fits.

    Args:
        subject: What is differentiated.
        request: What is asked for.
        leaves: The inputs; programs that cannot be predicted are run on them.
        narrow: The type that results are kept in, if not their own.
        kind: What makes lines of a subject.

    Raises:
        MemoryLimitExceeded: No plan fits; the message names the least that would do.
    """
    result = result_bytes(subject, request)
    room = _room(result, request)
    limit = request.budget if request.budget is not None else request.available
    ways = _ways(subject, request)
    refused: list[int] = []
    while ways:
        way = ways.pop(0)
        try:
            drafts = [Draft(lines, request, narrow) for lines in way.lines(subject, request, kind)]
            fitted = [_portion(draft, room, leaves) for draft in drafts]
        except (TypeError, ValueError, LookupError, NotImplementedError) as error:
            if way.segments:
                continue  # some operation's gradient cannot be taken piece by piece
            if way.mode == "reverse":
                raise
            # Forward mode has no form of lists of tensors (TensorArray, map_fn, recurrent layers).
            if not refused:
                ways = _reverse_after(ways, f"; columns cannot be computed: {_first_line(error)}")
            continue
        portions = [portion for portion, _ in fitted]
        held = int(max(portion.transient for portion in portions))
        held += subject.held if request.total else 0  # a batch is a copy of its part of the input
        held += 0 if request.streamed else int(result)
        if limit is None or held <= limit:
            notes = dict.fromkeys(note for _, note in fitted if note)
            why = "; ".join((way.why, *notes))
            return _plan(portions, way, why, result, Size(held), request)
        if way.segments and held >= min(refused):
            ways = [left for left in ways if not left.segments]  # more cross the cuts than is saved
        elif way.mode == "reverse" and not way.segments and kind is Lines:
            ways = [*_recomputing(subject, way), *ways]
        refused.append(held)
    raise _refusal(subject, request, result, min(refused))


@dataclass(frozen=True, slots=True)
class Way:
    """A way that is tried: rows or columns, activations kept or made again."""

    mode: Mode
    why: str
    segments: int = 0

    def lines(self, subject: Subject, request: Request, kind: Callable[..., Lines]) -> list[Lines]:
        """The lines of each output, or of each input."""
        groups = subject.outputs if self.mode == "reverse" else subject.sources
        found: list[Lines] = []
        for leaf in range(len(groups)):
            about = (leaf, request.examples, request.total)
            if self.segments:
                found.append(Recomputed(subject, self.mode, *about, segments=self.segments))
            else:
                found.append(kind(subject, self.mode, *about))
        return found


def _recomputing(subject: Subject, way: Way) -> list[Way]:
    """What is tried once activations did not fit: to make them again, in few segments or more."""
    if recomputable(subject) is not None:
        return []
    why = way.why + "; activations would break the budget and are computed again"
    return [Way("reverse", why, count) for count in segment_counts(subject)]


def _reverse_after(ways: list[Way], impossible: str) -> list[Way]:
    """What is left to try once columns turned out to be impossible."""
    left = [Way("reverse", way.why + impossible) for way in ways if way.mode == "reverse"]
    return left or [Way("reverse", "rows instead of columns" + impossible)]


def _room(result: Size, request: Request) -> int:
    """What a chunk may take for the sake of speed; the least is tried in any case."""
    part = _SHARE_ON_GPU if tensorflow().config.list_physical_devices("GPU") else _SHARE
    share = _ENOUGH * 8 if request.streamed else int(result.times(part)) + OBJECTS
    if result < _SMALL:
        share = max(share, _SMALL)
    if request.budget is None:
        return share if request.streamed else min(share, _ENOUGH // 2)
    left = int(request.budget) - (0 if request.streamed else int(result))
    return min(max(left - _COMPILING, left // 2), max(share, _ENOUGH))


def _ways(subject: Subject, request: Request) -> list[Way]:
    rows = sum(leaf.size for leaf in subject.outputs)
    columns = sum(leaf.size for leaf in subject.sources)
    numbers = f"{rows:,} outputs, {columns:,} inputs"
    if request.mode != "auto":
        chosen: Mode = "forward" if request.mode == "forward" else "reverse"
        return [Way(chosen, "asked for")]
    types = {leaf.dtype for leaf in (*subject.outputs, *subject.sources)}
    if subject.random:
        return [Way("reverse", "random numbers are drawn once, in one forward pass")]
    if len(types) > 1 or any(dtype.is_complex for dtype in types):
        return [Way("reverse", f"{numbers}")]
    # Columns are the way out where activations do not fit.
    is_long = columns * _FORWARD_COST > rows * _LONGEST_WAY_OUT
    way_out = [] if is_long else [Way("forward", WAY_OUT)]
    if request.streamed and not request.lazy:
        return [Way("reverse", "rows lie together in the file"), *way_out]
    if columns * _FORWARD_COST < rows:
        return [Way("forward", f"fewer columns than rows: {numbers}"), Way("reverse", numbers)]
    return [Way("reverse", f"rows cost no more than columns: {numbers}"), *way_out]


@dataclass(frozen=True, slots=True)
class Draft:
    """Lines that a plan is to be made for, and the program that would compute them."""

    lines: Lines
    request: Request
    narrow: Any

    def portion(self, chunk: int, leaves: Sequence[Any] | None, *, vectorised: bool) -> Portion:
        """So many lines at a time, with what that takes."""
        lines, narrow = self.lines, self.narrow
        step = step_program(lines, chunk, vectorised=vectorised, narrow=narrow)
        if lines.mode == "reverse" and not self.request.streamed:
            whole = self.request.whole or not lines.examples
            loop = filling_program(lines, chunk, vectorised=vectorised, whole=whole, narrow=narrow)
            kept = 0 if isinstance(lines, Recomputed) else lines.subject.activations
            taken, provenance = transient_of_loop(loop, step, leaves, kept)
        else:
            ahead = lines.subject.activations if lines.mode == "forward" else 0
            taken, provenance = transient_of(step, leaves, ahead)
        taken = int(taken * (_SEGMENTS_MARGIN if isinstance(lines, Recomputed) else 1))
        return Portion(lines, chunk, vectorised, Size(taken), provenance)


def _portion(draft: Draft, room: int, leaves: Sequence[Any] | None) -> tuple[Portion, str]:
    """The largest useful chunk in the room there is, or one line at a time."""
    why = ""
    if draft.lines.count > 1:
        try:
            fitted = _vectorised(draft, room, leaves)
        except Exception as error:  # noqa: BLE001 - pfor raises whatever its converters do
            fitted, why = None, f"not vectorised: {_first_line(error)}"
        if fitted is not None:
            return fitted, ""
        why = why or "one line at a time is what the budget leaves"
    return draft.portion(1, leaves, vectorised=False), why


def _vectorised(draft: Draft, room: int, leaves: Sequence[Any] | None) -> Portion | None:
    # In host memory, what a run takes cannot be measured well enough to choose by.
    leaves = leaves if tensorflow().config.list_physical_devices("GPU") else None
    count = draft.lines.count
    small, large = (min(probe, count) for probe in _PROBES)
    found = first = draft.portion(small, leaves, vectorised=True)
    if large > small and first.transient <= room:
        second = draft.portion(large, leaves, vectorised=True)
        each = max(1.0, (second.transient - first.transient) / (large - small))
        shared = first.transient - each * small
        chunk = int(max(small, min((room - shared) / each, count, _LARGEST_CHUNK)))
        chunk = balanced(count, chunk)
        found = second if chunk == large else draft.portion(chunk, leaves, vectorised=True)
    while found.transient > room and found.chunk > small:
        # The line through the probes was too low; what is predicted for the chunk itself counts.
        chunk = max(small, int(found.chunk * min(0.9, room / found.transient)))
        found = draft.portion(chunk, leaves, vectorised=True)
    return found if found.transient <= room else None


def _plan(  # noqa: PLR0913, PLR0917 - what a plan is made of
    portions: Sequence[Portion], way: Way, why: str, result: Size, held: Size, request: Request
) -> Plan:
    widest = max(portions, key=lambda portion: portion.lines.count)
    predicted = all(portion.provenance == "predicted" for portion in portions)
    examples = request.examples
    blocks = f"; the {request.total or examples} examples were found not to mix" if examples else ""
    batches = -(-request.total // examples) if request.total else 1
    return Plan(
        method="blocks" if examples else way.mode,
        mode=way.mode,
        reason=why + blocks,
        chunk=widest.chunk,
        lines=sum(portion.lines.count for portion in portions) * batches,
        vectorised=widest.vectorised,
        result=result,
        peak=held,
        provenance="predicted" if predicted else "measured",
        streamed=request.streamed,
        lazy=request.lazy,
        batch=examples if request.total else 0,
        batches=batches,
        segments=way.segments,
        portions=tuple(portions),
    )


def _refusal(subject: Subject, request: Request, result: Size, least: int) -> MemoryLimitExceeded:
    stated = request.budget is not None
    offered = f"{request.budget} was given" if stated else f"this machine has {request.available}"
    hint = f"`memory={least}` is enough"
    if not request.streamed and least - result < least // 2:
        rows = max(OBJECTS, least - int(result))
        hint += f'; or keep the result on disk: `out="j.npy", memory={rows}`'
    return MemoryLimitExceeded(
        f"the Jacobian of {subject.title} needs at least {Size(least)} ({least:,} bytes): the"
        f" result is {result}; {offered}",
        code="SNG521",
        hint=hint,
    )


def _first_line(error: Exception) -> str:
    """What went wrong, without the frames and colours that Keras and AutoGraph put around it."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in plain.splitlines()]
    said = [line for line in lines if line and not line.startswith(_FRAMES)]
    return (said[-1] if said else type(error).__name__)[:200]


_FRAMES: Final = ("•", "Arguments received", "Exception encountered", "File ", "in user code")
