"""What happened unseen while one window was read out and the next began.

The program itself waits then, but a thread of an input pipeline may go on: a batch is allocated or
freed that no trace has. The allocator's figures before and after say how many bytes that were, and
later events say of some buffers that they must have been born, or have died, at the seam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.recording.events import BEFORE, NO_DEATH, Stretch, concatenate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from snugly.recording.events import Buffers

LONGEST: Final = 2_000_000_000  # nanoseconds; after a longer pause the program has moved on


@dataclass(frozen=True, slots=True)
class Lives:
    """From which moment to which each buffer is alive, and what nobody saw.

    Moment `n + 1` is after event `n`; what happened at a seam shows from the event after it on.
    """

    births: NDArray[np.int64]
    deaths: NDArray[np.int64]
    unseen: tuple[tuple[int, int], ...]  # moment, bytes: born at a seam and never seen again


def bridge(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Put stretches together that follow one another closely, remembering the seams."""
    bridged: list[list[Stretch]] = []
    for stretch in stretches:
        last = bridged[-1][-1] if bridged else None
        if last is not None and 0 <= int(stretch.time[0] - last.time[-1]) <= LONGEST:
            bridged[-1].append(stretch)
        else:
            bridged.append([stretch])
    return [concatenate(parts, are_seams=True) for parts in bridged]


def lives_of(stretch: Stretch, buffers: Buffers) -> Lives:
    """When buffers were born and died, as far as the events and the seams between them tell."""
    length = len(stretch) + 1
    seams = np.array(stretch.seams, np.int64)
    is_born = buffers.birth != BEFORE
    at = np.where(is_born, buffers.birth, buffers.death)
    chunks, pipeline = stretch.allocated[at], stretch.is_pipeline[at] & is_born
    deaths = np.where(buffers.death == NO_DEATH, length, buffers.death + 1)
    # An address that is given out again was free by then.
    given_again = (buffers.death != NO_DEATH) & stretch.is_allocation[buffers.death]
    deaths = np.where(given_again, _after_seam(seams, buffers.death, deaths), deaths)
    births = np.where(is_born, buffers.birth + 1, 0)
    rises = {
        seam: stretch.before_event(seam)
        - int(stretch.in_use[seam - 1])
        + int(chunks[given_again & (deaths == seam + 1)].sum())
        for seam in stretch.seams
    }
    _bear(births, np.flatnonzero(~is_born), buffers.death, chunks, rises, stretch)
    unseen: list[tuple[int, int]] = []
    for seam, rise in rises.items():
        moment = seam + 1
        rest = int(chunks[~is_born & (births == moment)].sum()) - rise
        if rest < 0:
            unseen.append((moment, -rest))
        elif rest > 0:
            candidates = np.flatnonzero(pipeline & (births < moment) & (deaths == length))
            deaths[_adding_up_to(rest, candidates, chunks)] = moment
    return Lives(births, deaths, tuple(unseen))


def _bear(  # noqa: PLR0913, PLR0917 - columns of one table
    births: NDArray[np.int64],
    unborn: NDArray[np.int64],
    deaths: NDArray[np.int64],
    chunks: NDArray[np.int64],
    rises: dict[int, int],
    stretch: Stretch,
) -> None:
    """Buffers without a birth: from a seam that needs their bytes, else from before it all.

    Where there was no room for them before, they are from the last seam before their death.
    """
    waiting = sorted(unborn.tolist(), key=lambda buffer: int(deaths[buffer]))
    for seam, rise in rises.items():
        for buffer in list(waiting):
            if deaths[buffer] >= seam and 0 < chunks[buffer] <= rise:
                births[buffer] = seam + 1
                rise -= int(chunks[buffer])  # noqa: PLW2901 - what is left of it
                waiting.remove(buffer)
    room = stretch.before
    seams = np.array(stretch.seams, np.int64)
    for buffer in waiting:
        if chunks[buffer] <= room or not len(seams):
            room -= int(chunks[buffer])
        else:
            births[buffer] = int(_after_seam(seams, deaths[buffer : buffer + 1], 0)[0])


def _after_seam(
    seams: NDArray[np.int64], positions: NDArray[np.int64], otherwise: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    """The moment after the last seam at or before each position."""
    if not len(seams):
        return np.broadcast_to(np.asarray(otherwise, np.int64), positions.shape)
    found = np.searchsorted(seams, positions, side="right") - 1
    return np.where(found >= 0, seams[np.maximum(found, 0)] + 1, otherwise)


def _adding_up_to(size: int, candidates: NDArray[np.int64], chunks: NDArray[np.int64]) -> list[int]:
    """One buffer of just this size, else the oldest that together do not exceed it."""
    exact = candidates[chunks[candidates] == size]
    if len(exact):
        return [int(exact[0])]
    chosen: list[int] = []
    for candidate in candidates.tolist():
        if chunks[candidate] <= size:
            chosen.append(candidate)
            size -= int(chunks[candidate])
    return chosen
