"""Raw frames, or a trace made by others → Record."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import UnreadableRecordError
from snugly.graph.model import Kind, Origin
from snugly.readers.xplane import read_xplane
from snugly.recording.attribution import Identity, Knowledge, identify, name_holders
from snugly.recording.events import BEFORE, Stretch, buffers_of, device_events, join
from snugly.recording.frames import table_of
from snugly.recording.record import Record, Samples, Window
from snugly.recording.seams import bridge, lives_of
from snugly.timeline import Span, Timeline
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from snugly.readers.xplane import Trace
    from snugly.recording.frames import Frame

MOST_MOMENTS: Final = 400_000  # of a timeline; a longer stretch is cut around its peak
ROUNDING: Final = 256  # kMinAllocationSize, xla/tsl/framework/bfc_allocator.h, TF 2.21
UNNAMED: Final = "(before the recording)"
# Below this the difference is what was freed between the last event and the question.
_NOTEWORTHY: Final = 0.001
_UNCOUNTED: Final = (
    "without oneDNN, as on this processor or as TF_ENABLE_ONEDNN_OPTS says, TensorFlow's allocator"
    " neither counts nor is traced: the peak is by how much the process grew. Set"
    " TF_CPU_ALLOCATOR_USE_BFC=1 before importing TensorFlow, or use `snugly profile`"
)


@dataclass(slots=True)
class _Raw:
    """What the frames of an unfinished record say."""

    facts: dict[str, Any] = field(default_factory=dict)
    known: Knowledge = field(default_factory=Knowledge)
    samples: dict[str, list[NDArray[np.int64]]] = field(default_factory=lambda: defaultdict(list))
    calls: dict[str, list[NDArray[np.int64]]] = field(default_factory=lambda: defaultdict(list))
    traces: list[tuple[int, int, bytes]] = field(default_factory=list)

    def sampled(self, name: str) -> NDArray[np.int64]:
        """A column of samples."""
        return np.concatenate(self.samples[name]) if self.samples[name] else np.zeros(0, np.int64)


def record_of_frames(frames: Iterable[Frame], notes: Sequence[str] = ()) -> Record:
    """The record that raw frames tell of."""
    raw = _collect(list(frames))
    facts = raw.facts
    device = str(facts.get("main_device") or "CPU:0")
    start = int(facts.get("started", 0))
    windows: list[Window] = []
    stretches: list[Stretch] = []
    for begin, end, data in raw.traces:
        events = device_events(read_xplane(data), device)
        windows.append(Window(begin - start, end - start, len(events), events.peak, events.before))
        stretches.append(events)
    part = _highest(bridge(join(stretches)), int(facts.get("since", 0)))
    timeline = Timeline([], 0)
    if part is not None:
        during = _windows_of(part.stretch, raw.traces)
        raw.known.only_held_in(during)
        # Before the first window nothing happened unseen that we could know of.
        timeline = _timeline(part, raw.known, raw.traces[during.start][0] if during.start else 0)
    traced = part.peak if part is not None else 0
    peak = max(
        int(facts.get("peaks", {}).get(device, 0)),
        traced,
    )
    if "since" not in facts:  # else the allocator's count began anew, and what was before is gone
        seen = (int(raw.sampled("peak").max(initial=0)), *(window.peak for window in windows))
        peak = max(peak, *seen)
    uncounted = _is_uncounted(facts, device, peak)
    return Record(
        program=str(facts.get("program", "")),
        device=device,
        peak=Size(int(facts["grown"]) if uncounted else peak),
        timeline=timeline,
        samples=_samples(raw, start),
        windows=tuple(windows),
        notes=(*notes, *([_UNCOUNTED] if uncounted else _notes(facts, peak, traced))),
        facts=_public(facts),
    )


def record_of_trace(
    trace: Trace,
    *,
    program: str = "",
    device: str | None = None,
    notes: Sequence[str] = (),
) -> Record:
    """The record of one trace, as made by TensorFlow's profiler without us."""
    stretch = device_events(trace, device)
    name = device or _device_of(trace)
    return Record(
        program=program,
        device=name,
        peak=Size(stretch.peak),
        timeline=_timeline(_Part(stretch, 0, len(stretch)), Knowledge()),
        windows=(Window(0, _length(stretch), len(stretch), stretch.peak, stretch.before),),
        notes=notes,
    )


def _device_of(trace: Trace) -> str:
    cards = sorted(name for name in trace.allocators if name.startswith("GPU_"))
    return f"GPU:{cards[0].split('_')[1]}" if cards else "CPU:0"


def _length(stretch: Stretch) -> int:
    return int(stretch.time[-1] - stretch.time[0]) if len(stretch) else 0


def _collect(frames: Sequence[Frame]) -> _Raw:
    raw = _Raw()
    try:
        for frame in frames:  # what is said last counts, and for all
            if frame.tag == "FACT":
                raw.facts |= frame.header
        raw.known.device = raw.facts.get("main_device")
        for frame in frames:
            _take(frame, raw)
    except (KeyError, TypeError, ValueError) as problem:
        raise UnreadableRecordError(f"the record is damaged: {problem}") from problem
    calls = {name: np.concatenate(columns) for name, columns in raw.calls.items() if columns}
    if calls:
        order = np.argsort(calls["begin"], kind="stable")
        raw.known.calls = {name: column[order] for name, column in calls.items()}
    return raw


def _take(frame: Frame, raw: _Raw) -> None:
    header: Mapping[str, Any] = frame.header
    match frame.tag:
        case "SAMP":
            for name, column in table_of(frame).items():
                raw.samples[name].append(column)
        case "CALL":
            for name, column in table_of(frame).items():
                raw.calls[name].append(column)
        case "NAME":
            raw.known.places[int(header["first"]) :] = [str(name) for name in header["places"]]
        case "ORIG":
            raw.known.add_origins(header["origins"])
        case "HELD":
            raw.known.add_held(header["held"], len(raw.traces))
        case "XPLN":
            raw.traces.append((int(header["begin"]), int(header["end"]), frame.body))
        case _:
            pass  # of a later minor version: not ours to understand


@dataclass(frozen=True, slots=True)
class _Part:
    """Those events of a stretch that count; what comes before still explains them."""

    stretch: Stretch
    begin: int
    end: int

    @property
    def peak(self) -> int:
        return self.stretch.part(self.begin, self.end).peak


def _highest(stretches: list[Stretch], since: int) -> _Part | None:
    """Where the peak is highest, cut around it where that is very long."""
    parts = [
        _Part(stretch, begin, len(stretch))
        for stretch in stretches
        if (begin := int(np.searchsorted(stretch.time, since))) < len(stretch)
    ]
    if not parts:
        return None
    part = max(parts, key=lambda one: one.peak)
    if part.end - part.begin <= MOST_MOMENTS:
        return part
    moment = part.begin + int(part.stretch.in_use[part.begin :].argmax())
    begin = max(part.begin, min(moment - MOST_MOMENTS // 2, part.end - MOST_MOMENTS))
    return _Part(part.stretch, begin, begin + MOST_MOMENTS)


def _windows_of(stretch: Stretch, traces: Sequence[tuple[int, int, bytes]]) -> range:
    """The windows that a stretch was put together from."""
    first, last = int(stretch.time[0]), int(stretch.time[-1])
    during = [
        number for number, (begin, end, _) in enumerate(traces) if begin <= last and first <= end
    ]
    return range(during[0], during[-1] + 1) if during else range(len(traces))


def _timeline(part: _Part, known: Knowledge, since: int = 0) -> Timeline:
    """All buffers of a stretch, then those of its part. Moment 0 is before the first event."""
    stretch = part.stretch
    length = len(stretch) + 1
    buffers = buffers_of(stretch)
    born = buffers.birth != BEFORE
    unborn = int((~born).sum())  # they come first
    unnamed = [Identity(Kind.UNKNOWN, UNNAMED, Origin())] * unborn
    identities = unnamed + identify(stretch, buffers.birth[born], buffers.death[born], known)
    kept = name_holders(stretch, buffers, known, identities, since)
    lives = lives_of(stretch, buffers)
    at = np.where(born, buffers.birth, buffers.death)
    spans = [
        Span(size, identity.kind, identity.operation, birth, death, identity.origin, chunk)
        for identity, size, chunk, birth, death in zip(
            identities,
            stretch.requested[at].tolist(),
            stretch.allocated[at].tolist(),
            lives.births.tolist(),
            lives.deaths.tolist(),
            strict=True,
        )
        if size
    ]
    spans += [
        Span(size, Kind.UNKNOWN, UNNAMED, moment, length, allocated=size)
        for moment, size in lives.unseen
    ]
    from_before = ~born & (lives.births == 0)
    in_use = stretch.before - int(stretch.allocated[at[from_before]].sum())
    spans += _from_before(kept, in_use, length)
    return Timeline(spans, length).between(part.begin, part.end + 1)


def _from_before(kept: Sequence[tuple[int, Identity]], in_use: int, length: int) -> Iterator[Span]:
    """What was there before and after. Its chunks are not known, only their sum with the rest.

    A chunk may be up to twice what was asked for, so what exceeds the named bytes may be nothing
    but that; what exceeds twice the named bytes is certainly somebody's.
    """
    chunks = [-(-size // ROUNDING) * ROUNDING for size, _ in kept]
    named = sum(chunks)
    if named > in_use:  # somebody let go unseen; whom to believe, nobody knows
        kept, chunks, named = (), [], 0
    surplus = min(max(in_use - named, 0), named)
    for (size, identity), chunk in zip(kept, chunks, strict=True):
        share = surplus * chunk // named
        yield Span(
            size, identity.kind, identity.operation, 0, length, identity.origin, chunk + share
        )
    unnamed = in_use - named - surplus
    if unnamed > 0:
        yield Span(unnamed, Kind.UNKNOWN, UNNAMED, 0, length, allocated=unnamed)


def _samples(raw: _Raw, start: int) -> Samples:
    columns = {name: raw.sampled(name) for name in ("nanoseconds", "process", "in_use", "card")}
    columns["nanoseconds"] = columns["nanoseconds"] - start
    return Samples(**columns)


_PUBLIC: Final = (
    "command",
    "exit_code",
    "leaks",
    "mode",
    "python",
    "tensorflow",
    "keras",
    "peaks",
    "steps",
    "complete",
)


def _public(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Those facts that reports show; times become the length of the run."""
    shown = {name: facts[name] for name in _PUBLIC if name in facts}
    if "ended" in facts and "started" in facts:
        shown["seconds"] = round((int(facts["ended"]) - int(facts["started"])) / 1e9, 3)
    return shown


def _is_uncounted(facts: Mapping[str, Any], device: str, peak: int) -> bool:
    """Whether TensorFlow was at work with an allocator that neither counts nor is traced."""
    is_known = device != "CPU:0" or device in facts.get("peaks", {}) or peak > 0
    return not is_known and "grown" in facts


def _notes(facts: Mapping[str, Any], peak: int, traced: int) -> list[str]:
    notes = [str(note) for note in facts.get("notes", ())]
    if not facts.get("complete"):
        notes.append("the run ended before its recording did: what comes last is missing")
    if "tensorflow" not in facts and facts.get("complete"):
        notes.append("the program did not use TensorFlow: there is nothing but samples")
    elif not facts.get("counts_everything", True):
        notes.append(
            "TensorFlow was loaded with an allocator that neither counts nor traces tensors under"
            " 256 KiB: set TF_CPU_ALLOCATOR_USE_BFC=1 before importing it, or use `snugly profile`"
        )
    if "cuda_malloc_async" in str(facts.get("gpu_allocator", "")) and not traced:
        notes.append(
            "TF_GPU_ALLOCATOR=cuda_malloc_async reports no allocations: there are samples alone"
        )
    elif traced and peak - traced > peak * _NOTEWORTHY:
        notes.append(
            f"the peak of {Size(peak)} was not traced;"
            f" what is shown is the highest traced moment, {Size(traced)}"
        )
    return notes
