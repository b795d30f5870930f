"""A Jacobian cut into pieces that workers compute on their own: some lines, of some examples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.jacobians.plan import balanced

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from snugly.jacobians.lines import Mode
    from snugly.jacobians.plan import Plan, Portion
    from snugly.jacobians.subject import Leaf

_TARGET: Final = 64 << 20
"""Bytes of a piece, about: a task costs Dask a millisecond or two, and each a forward pass."""
_PIECES_PER_WORKER: Final = 4


@dataclass(frozen=True, slots=True)
class SentLines:
    """What a worker has to know of `Lines`, without the function."""

    mode: Mode
    leaf: int
    examples: int
    count: int
    across: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class SentPortion:
    """What a worker has to know of a `Portion`."""

    lines: SentLines
    chunk: int


@dataclass(frozen=True, slots=True)
class Outline:
    """What a writer has to know of a `Subject`: the sizes of everything."""

    outputs: tuple[Leaf, ...]
    sources: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines `first` to `stop` of a portion, of the examples from `example` on."""

    portion: int
    first: int
    stop: int
    example: int

    @property
    def key(self) -> str:
        """Its name among others."""
        return f"piece-{self.portion}-{self.example}-{self.first}-{self.stop}"


def sent(portion: Portion, chunk: int) -> SentPortion:
    """A portion without its function, in smaller chunks."""
    lines = portion.lines
    across = tuple(lines.across)
    return SentPortion(
        SentLines(lines.mode, lines.leaf, lines.examples, lines.count, across), chunk
    )


def lines_of_a_piece(portion: Portion, plan: Plan, workers: int, grain: int = 1) -> int:
    """How many lines go into a piece.

    Args:
        portion: Whose lines.
        plan: The plan it belongs to.
        workers: How many there are to be kept busy.
        grain: Rows that lie in one file together.
    """
    lines = portion.lines
    line = sum(leaf.bytes for leaf in lines.across)
    wanted = max(portion.chunk, _TARGET // max(1, line))
    share = -(-lines.count * plan.batches // (_PIECES_PER_WORKER * workers))
    taken = max(1, min(wanted, share, lines.count))
    if lines.mode == "reverse" and not lines.examples and grain <= 2 * taken:
        taken = -(-taken // grain) * grain  # so that no two workers write to one file
    return min(taken, lines.count)


def chunk_of_a_piece(portion: Portion, lines: int) -> int:
    """How many lines of a piece are computed at a time, no more than was planned."""
    return balanced(lines, min(portion.chunk, lines))


def cut(plan: Plan, lengths: Sequence[int]) -> list[Piece]:
    """All pieces of a plan, where those of each portion have so many lines."""
    pieces: list[Piece] = []
    for example in plan.starts():
        for number, (portion, length) in enumerate(zip(plan.portions, lengths, strict=True)):
            count = portion.lines.count
            pieces.extend(
                Piece(number, first, min(first + length, count), example)
                for first in range(0, count, length)
            )
    return pieces


def left_over(pieces: Iterable[Piece], done: Iterable[Sequence[int]]) -> list[Piece]:
    """The pieces that are not covered by lines done before: (portion, first, stop, example)."""
    covered: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for portion, first, stop, example in done:
        covered.setdefault((portion, example), []).append((first, stop))
    left: list[Piece] = []
    for piece in pieces:
        reached = piece.first
        for first, stop in sorted(covered.get((piece.portion, piece.example), [])):
            if first <= reached:
                reached = max(reached, stop)
        if reached < piece.stop:
            left.append(piece)
    return left


def stretch(extents: Sequence[int], most: int) -> tuple[int, ...]:
    """Extents of a block that lies in one stretch, holds at most so many, and divides evenly."""
    block = [1] * len(extents)
    for axis in range(len(extents) - 1, -1, -1):
        extent = extents[axis]
        block[axis] = max((d for d in _divisors(extent) if d <= most), default=1)
        if block[axis] != extent:
            break
        most //= max(1, extent)
    return tuple(block)


def _divisors(number: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(max(1, number)) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def as_record(piece: Piece) -> list[Any]:
    """What the journal says of a finished piece."""
    return [piece.portion, piece.first, piece.stop, piece.example]
