"""What each buffer is and where it comes from: kind, layer, line of the user's code.

In this order: whoever was seen holding the buffer (a variable); the graph that has the operation;
the call from Python during which it was made. What none of them knows stays unknown.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.graph.model import Kind, Origin
from snugly.recording.calls import BACKWARD, FUNCTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from snugly.recording.events import Buffers, Stretch

NOBODY: Final = "(not named)"
MOST_INNER_CALLS: Final = 64  # that are looked past; beyond, a call stays unknown
_PHASES: Final = 4  # how calls pack what was called and the phase: what + 4 × phase


@dataclass(frozen=True, slots=True)
class Identity:
    """What a buffer is."""

    kind: Kind
    operation: str
    origin: Origin
    lasts: bool = False  # made in a function, and alive after its call


@dataclass(slots=True)
class Knowledge:
    """All that was noted about names, beside the trace itself."""

    places: list[str] = field(default_factory=list)
    origins: dict[tuple[str, str], Origin] = field(default_factory=dict)  # graph, operation
    anywhere: dict[str, Origin] = field(default_factory=dict)  # operation alone
    optimizers: set[str] = field(default_factory=set)
    calls: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    device: str | None = None  # of whose buffers holders are wanted; None: of all
    held: list[tuple[int, int, int, Identity]] = field(default_factory=list)
    held_in: list[int] = field(default_factory=list)  # the window that each was written with

    def add_origins(self, rows: Sequence[Any]) -> None:
        """Rows of graph, operation, layer, line."""
        for graph, operation, layer, line in rows:
            origin = Origin(layer, line)
            self.origins[str(graph), str(operation)] = origin
            known = self.anywhere.setdefault(str(operation), origin)
            if known != origin:  # two graphs have such an operation: what is true of both
                self.anywhere[str(operation)] = Origin(
                    known.layer if known.layer == layer else None,
                    known.line if known.line == line else None,
                )

    def add_held(self, rows: Sequence[Any], window: int = 0) -> None:
        """Rows of time, address, bytes, kind, name, layer, line, device, written with a window.

        What lies on another device than the one that is looked at has addresses of its own.
        """
        for time, address, size, kind, name, layer, line, *device in rows:
            if device and self.device is not None and device[0] != self.device:
                continue
            identity = Identity(Kind(kind), str(name), Origin(layer, line))
            self.held.append((int(time), int(address), int(size), identity))
            self.held_in.append(window)
            if identity.kind is Kind.OPTIMIZER:
                self.optimizers.add(str(name).partition("/")[0])

    def only_held_in(self, windows: range) -> None:
        """Forget who held what in other windows: by then the address may have been another's."""
        self.held = [
            row for row, window in zip(self.held, self.held_in, strict=True) if window in windows
        ]

    def place(self, number: int) -> str | None:
        """A place by its number."""
        return self.places[number] if 0 <= number < len(self.places) else None


def identify(
    stretch: Stretch, births: NDArray[np.int64], deaths: NDArray[np.int64], known: Knowledge
) -> list[Identity]:
    """The identity of each buffer that was born in a stretch."""
    calls = _calls_at(stretch.time[births], known.calls)
    ends = known.calls.get("end", np.zeros(0, np.int64))
    alive_until = np.where(deaths >= 0, stretch.time[np.maximum(deaths, 0)], np.iinfo(np.int64).max)
    columns = [known.calls.get(name, ends) for name in ("place", "layer", "function", "what")]
    memory: dict[tuple[Any, ...], Identity] = {}
    identities: list[Identity] = []
    for birth, call, until in zip(births.tolist(), calls.tolist(), alive_until, strict=True):
        row = tuple(int(column[call]) for column in columns) if call >= 0 else (-1, -1, -1, 0)
        outlives = call >= 0 and until > ends[call]
        key = (
            int(stretch.operation[birth]),
            bool(stretch.is_scratch[birth]),
            bool(stretch.is_pipeline[birth]),
            outlives,
            call >= 0,
            *row,
        )
        identity = memory.get(key)
        if identity is None:
            identity = memory[key] = _identify(stretch, birth, row, known, outlives=outlives)
        identities.append(identity)
    return identities


def _identify(
    stretch: Stretch,
    birth: int,
    call: tuple[int, ...],
    known: Knowledge,
    *,
    outlives: bool,
) -> Identity:
    number = int(stretch.operation[birth])
    operation = stretch.names[number] if number >= 0 else ""
    place, layer, function, packed = call
    what, phase = packed % _PHASES, packed // _PHASES
    in_graph = what == FUNCTION and function >= 0
    called_at = known.place(place)
    if in_graph or bool(stretch.is_pipeline[birth]):
        graph = known.place(function) or ""
        found = known.origins.get((graph, operation)) or known.anywhere.get(operation)
        origin = found or Origin()
        origin = Origin(origin.layer, origin.line or called_at)
    else:
        origin = Origin(known.place(layer), called_at)
    kind = _kind(operation, known, scratch=bool(stretch.is_scratch[birth]), phase=phase)
    if bool(stretch.is_pipeline[birth]) or not (operation or in_graph):
        kind = Kind.INPUT
    elif not operation:  # a library's own: XLA's buffers, what it tries algorithms with
        kind = Kind.OUTPUT if outlives else Kind.WORKSPACE
    elif kind is Kind.ACTIVATION and in_graph and outlives:
        kind = Kind.OUTPUT
    return Identity(kind, operation or NOBODY, origin, lasts=in_graph and outlives)


def _kind(operation: str, known: Knowledge, *, scratch: bool, phase: int) -> Kind:
    if scratch:
        return Kind.WORKSPACE
    parts = operation.split("/")
    backward = "gradient_tape" in parts or "gradients" in parts
    if backward or phase >= BACKWARD or not known.optimizers.isdisjoint(parts):
        return Kind.GRADIENT
    return Kind.ACTIVATION


def _calls_at(times: NDArray[np.int64], calls: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """The call during which each time lies, -1 for none. Calls are sorted by their begin."""
    begins, ends = calls.get("begin"), calls.get("end")
    if begins is None or ends is None or not len(begins):
        return np.full(len(times), -1, np.int64)
    found = np.searchsorted(begins, times, side="right") - 1
    # A call may have begun inside another, of a py_function for instance: look for the outer one.
    for _ in range(MOST_INNER_CALLS):
        outside = (found >= 0) & (ends[np.maximum(found, 0)] < times)
        if not outside.any():
            break
        found = np.where(outside, found - 1, found)
    outside = (found < 0) | (ends[np.maximum(found, 0)] < times)
    return np.where(outside, -1, found)


def name_holders(
    stretch: Stretch,
    buffers: Buffers,
    known: Knowledge,
    identities: list[Identity],
    since: int = 0,
) -> list[tuple[int, Identity]]:
    """Let buffers that somebody was seen holding be called after that holder.

    Gives back what is held but neither born nor buried in the stretch: bytes and identity. Whoever
    was seen before `since` alone may have let go of it in between, unseen.
    """
    by_address: dict[int, list[int]] = defaultdict(list)
    at = np.where(buffers.birth >= 0, buffers.birth, buffers.death)
    for position, address in enumerate(stretch.address[at].tolist()):
        by_address[address].append(position)
    births = np.where(buffers.birth >= 0, stretch.time[np.maximum(buffers.birth, 0)], 0)
    deaths = np.where(
        buffers.death >= 0, stretch.time[np.maximum(buffers.death, 0)], np.iinfo(np.int64).max
    )
    kept: dict[int, tuple[int, Identity]] = {}
    makers: dict[tuple[str, int], Identity | None] = {}
    for time, address, size, identity in known.held:
        positions = by_address.get(address)
        if positions is None:
            if time >= since:
                kept[address] = size, identity  # the latest word counts
            continue
        for position in positions:
            if births[position] <= time < deaths[position]:
                maker = identities[position]
                identities[position] = named = _with_line(identity, maker)
                if maker.lasts:
                    made = makers.setdefault((maker.operation, size), named)
                    if made is not None and made.operation != named.operation:
                        makers[maker.operation, size] = None  # makes values for several
                break
    _name_earlier_values(identities, stretch.requested[at], makers)
    return list(kept.values())


def _name_earlier_values(
    identities: list[Identity],
    sizes: NDArray[np.int64],
    makers: dict[tuple[str, int], Identity | None],
) -> None:
    """A variable that gets a new buffer in every step was seen with the last one alone.

    What the same operation made before, and left behind, was its value then.
    """
    for position, identity in enumerate(identities):
        if identity.lasts:
            holder = makers.get((identity.operation, int(sizes[position])))
            if holder is not None:
                identities[position] = holder


def _with_line(holder: Identity, maker: Identity) -> Identity:
    """A holder without a line gets that of the call during which its buffer was made."""
    if holder.origin.line is not None or maker.origin.line is None:
        return holder
    return replace(holder, origin=Origin(holder.origin.layer, maker.origin.line))
