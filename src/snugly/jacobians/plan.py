"""How a Jacobian would be computed inside a budget, and why so.

Beside the result a chunk of c lines takes m₀ + m₁·c bytes: what all lines share (the activations),
and what each adds. Both come from predicting the traced program for two small chunks; the program
that is chosen is predicted once more before it runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import MemoryLimitExceeded
from snugly.jacobians.lines import Lines, Mode, step_program
from snugly.jacobians.memory import OBJECTS, transient_of
from snugly.jacobians.subject import tensorflow
from snugly.units import Provenance, Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from snugly.jacobians.subject import Subject

_SHARE: Final = 0.09
"""Without a budget, a chunk may take this share of the result, so that the peak stays under 1.1."""
_ENOUGH: Final = 32 << 20
"""A chunk that takes so many bytes is taken to be large enough (assumed, not measured)."""
_COMPILING: Final = 40 << 20
"""What TensorFlow's programs take when they are made and first run (10 to 40 MiB were seen) is no
part of a budget, but so much is left free where there is as much."""
_SMALL: Final = 1 << 20
"""A result smaller than this may have as much beside it."""
_LARGEST_CHUNK: Final = 1024
_PROBES: Final = (2, 8)
_WAY_OUT: Final = "activations kept for rows would break the budget; columns keep none"
_FORWARD_COST: Final = 1.5
"""A column takes about so many times as long as a row (assumed, not measured)."""


@dataclass(frozen=True, slots=True)
class Portion:
    """How the lines of one output, or of one input, are computed."""

    lines: Lines
    chunk: int
    """How many lines at a time."""
    vectorised: bool
    transient: Size
    """What a chunk takes beside inputs, weights and result."""
    provenance: Provenance

    @property
    def turns(self) -> int:
        """How many chunks there are."""
        return -(-self.lines.count // self.chunk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to compute a Jacobian; `print` it."""

    method: str
    """`reverse` or `forward`; `blocks` where examples do not mix; `sparse`."""
    mode: Mode
    reason: str
    chunk: int
    """Lines (rows in reverse mode, columns in forward mode) that are computed at a time."""
    lines: int
    """How many products there are in all."""
    vectorised: bool
    """Whether the lines of a chunk are computed side by side."""
    result: Size
    """The Jacobian itself."""
    peak: Size
    """Beside inputs and weights, at most; with the result where that is in memory."""
    provenance: Provenance
    """Whether the peak is predicted or was measured on one line."""
    streamed: bool = False
    batch: int = 0
    """How many examples at a time; 0 for all of them."""
    batches: int = 1
    notes: tuple[str, ...] = ()
    portions: tuple[Portion, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        how = f"{self.chunk} at a time" if self.vectorised else "one at a time"
        kind = "rows" if self.mode == "reverse" else "columns"
        where = "on disk" if self.streamed else "in memory"
        how += f", {self.batch} examples at a time" if self.batch else ""
        said = "".join(f"\n  {note}" for note in self.notes)
        return (
            f"{self.method}: {self.lines} {kind}, {how}; result {self.result} {where},"
            f" peak {self.peak} ({self.provenance}); {self.reason}{said}"
        )

    @property
    def is_way_out(self) -> bool:
        """Whether rows would be cheaper, and only their activations speak against them."""
        return self.reason.startswith(_WAY_OUT)

    def starts(self) -> Iterator[int]:
        """The first example of each batch; the last begins earlier rather than being smaller."""
        total = self.portions[0].lines.total
        for number in range(self.batches):
            yield min(number * self.batch, total - self.batch) if self.batch else 0

    def noting(self, *notes: str) -> Plan:
        """The same with more to say."""
        return replace(self, notes=(*self.notes, *notes)) if notes else self


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a plan."""

    budget: Size | None = None
    mode: str = "auto"
    examples: int = 0
    """How many examples were found not to mix; 0 where they do, or there are none."""
    total: int = 0
    """How many examples there are in all, where the subject has only some of them."""
    whole: bool = True
    """Whether the zeros between examples are part of the result."""
    streamed: bool = False
    item: int = 0
    """Bytes of an entry of the result, where that is not the input's own type."""
    available: Size | None = None
    """What the machine has, where no budget is given."""


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
    modes = _modes(subject, request)
    refused: list[tuple[int, str]] = []
    while modes:
        mode, why = modes.pop(0)
        groups = subject.outputs if mode == "reverse" else subject.sources
        examples = request.examples
        room, portions, notes = _room(result, request), [], [why]
        try:
            for leaf in range(len(groups)):
                lines = kind(subject, mode, leaf, examples, request.total)
                portion, note = _portion(lines, room, leaves, narrow)
                portions.append(portion)
                notes += [note] if note and note not in notes else []
        except (TypeError, ValueError, LookupError, NotImplementedError) as error:
            # Forward mode has no form of lists of tensors (TensorArray, map_fn, recurrent layers).
            if mode == "reverse":
                raise
            impossible = f"; columns cannot be computed: {_first_line(error)}"
            if not refused:
                modes = _reverse_after(modes, impossible)
            continue
        why = "; ".join(notes)
        most = max(portion.transient for portion in portions)
        most += subject.held if request.total else 0  # a batch is a copy of its part of the input
        held = most if request.streamed else most + result
        limit = request.budget if request.budget is not None else request.available
        if limit is None or held <= limit:
            return _plan(portions, mode, why, result, Size(held), request)
        refused.append((int(held), mode))
    raise _refusal(subject, request, result, min(refused)[0])


def _reverse_after(modes: list[tuple[Mode, str]], impossible: str) -> list[tuple[Mode, str]]:
    """What is left to try once columns turned out to be impossible."""
    left: list[tuple[Mode, str]] = [
        ("reverse", why + impossible) for mode, why in modes if mode == "reverse"
    ]
    return left or [("reverse", "rows instead of columns" + impossible)]


def result_bytes(subject: Subject, request: Request) -> Size:
    """What the Jacobian itself takes."""
    total = 0
    for output in subject.outputs:
        for source in subject.sources:
            item = request.item or source.dtype.size
            each = max(1, request.examples)
            blocks = (request.total or each) ** (2 if request.whole else 1)
            total += (output.size // each) * (source.size // each) * blocks * item
    return Size(total)


def _room(result: Size, request: Request) -> int:
    """What a chunk may take for the sake of speed; the least is tried in any case."""
    share = _ENOUGH * 8 if request.streamed else int(result.times(_SHARE)) + OBJECTS
    if result < _SMALL:
        share = max(share, _SMALL)
    if request.budget is None:
        return share if request.streamed else min(share, _ENOUGH // 2)
    left = int(request.budget) - (0 if request.streamed else int(result))
    return min(max(left - _COMPILING, left // 2), max(share, _ENOUGH))


def _modes(subject: Subject, request: Request) -> list[tuple[Mode, str]]:
    rows = sum(leaf.size for leaf in subject.outputs)
    columns = sum(leaf.size for leaf in subject.sources)
    numbers = f"{rows:,} outputs, {columns:,} inputs"
    if request.mode != "auto":
        chosen: Mode = "forward" if request.mode == "forward" else "reverse"
        return [(chosen, "asked for")]
    types = {leaf.dtype for leaf in (*subject.outputs, *subject.sources)}
    if subject.random:
        return [("reverse", "random numbers are drawn once, in one forward pass")]
    if len(types) > 1 or any(dtype.is_complex for dtype in types):
        return [("reverse", f"{numbers}")]
    if request.streamed:
        # Rows lie together in the file; columns are the way out where activations do not fit.
        return [
            ("reverse", "rows lie together in the file"),
            ("forward", _WAY_OUT),
        ]
    if columns * _FORWARD_COST < rows:
        return [("forward", f"fewer columns than rows: {numbers}"), ("reverse", numbers)]
    return [
        ("reverse", f"rows cost no more than columns: {numbers}"),
        ("forward", _WAY_OUT),
    ]


def _portion(
    lines: Lines, room: int, leaves: Sequence[Any] | None, narrow: Any
) -> tuple[Portion, str]:
    """The largest useful chunk in the room there is, or one line at a time."""
    why = ""
    if lines.count > 1:
        try:
            fitted = _vectorised(lines, room, leaves, narrow)
        except Exception as error:  # noqa: BLE001 - pfor raises whatever its converters do
            fitted, why = None, f"not vectorised: {_first_line(error)}"
        if fitted is not None:
            return fitted, ""
        why = why or "one line at a time is what the budget leaves"
    program = step_program(lines, 1, vectorised=False, narrow=narrow)
    transient, provenance = transient_of(program, leaves, ahead_of(lines))
    return Portion(lines, 1, False, Size(transient), provenance), why


def _vectorised(
    lines: Lines, room: int, leaves: Sequence[Any] | None, narrow: Any
) -> Portion | None:
    # In host memory, what a run takes cannot be measured well enough to choose by.
    leaves = leaves if tensorflow().config.list_physical_devices("GPU") else None

    def transient(chunk: int) -> tuple[int, Provenance]:
        program = step_program(lines, chunk, vectorised=True, narrow=narrow)
        return transient_of(program, leaves, ahead_of(lines))

    small, large = (min(probe, lines.count) for probe in _PROBES)
    first, provenance = transient(small)
    chunk, taken = small, first
    if large > small and first <= room:
        second, _ = transient(large)
        each = max(1.0, (second - first) / (large - small))
        shared = first - each * small
        chunk = int(max(small, min((room - shared) / each, lines.count, _LARGEST_CHUNK)))
        chunk = _balanced(lines.count, chunk)
        taken = second if chunk == large else transient(chunk)[0]
    while taken > room and chunk > small:
        # The line through the probes was too low; what is predicted for the chunk itself counts.
        chunk = max(small, int(chunk * min(0.9, room / taken)))
        taken, provenance = transient(chunk)
    if taken > room:
        return None
    return Portion(lines, chunk, True, Size(taken), provenance)


def ahead_of(lines: Lines) -> int:
    """What may be computed before it is needed: in forward mode, every activation."""
    return lines.subject.activations if lines.mode == "forward" else 0


def _balanced(count: int, chunk: int) -> int:
    """The smallest chunk with as few turns."""
    turns = -(-count // chunk)
    return -(-count // turns)


def _plan(  # noqa: PLR0913, PLR0917 - what a plan is made of
    portions: Sequence[Portion], mode: Mode, why: str, result: Size, held: Size, request: Request
) -> Plan:
    widest = max(portions, key=lambda portion: portion.lines.count)
    predicted = all(portion.provenance == "predicted" for portion in portions)
    examples = request.examples
    blocks = f"; the {request.total or examples} examples were found not to mix" if examples else ""
    batches = -(-request.total // examples) if request.total else 1
    return Plan(
        method="blocks" if examples else mode,
        mode=mode,
        reason=why + blocks,
        chunk=widest.chunk,
        lines=sum(portion.lines.count for portion in portions) * batches,
        vectorised=widest.vectorised,
        result=result,
        peak=held,
        provenance="predicted" if predicted else "measured",
        streamed=request.streamed,
        batch=examples if request.total else 0,
        batches=batches,
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
