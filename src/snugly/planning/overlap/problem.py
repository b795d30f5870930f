"""Blocks with lifetimes, which of them may overlap and how far, and the answer: offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes that are needed from the moment `first` to the moment `last`, both included."""

    name: str
    bytes: int
    first: int
    last: int

    def meets(self, other: Block) -> bool:
        """Whether there is a moment at which both are needed."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Overlap:
    """A writer that may lie over the reader: the block whose last moment is the writer's first.

    The writer's offset less the reader's is at most `furthest`, or the two share no byte. With
    `same_place_only`, it is 0 or they share no byte.
    """

    writer: int
    reader: int
    furthest: int = 0
    same_place_only: bool = False


@dataclass(frozen=True, slots=True)
class Placed:
    """Offsets, their height, and a height below which nothing is possible."""

    offsets: tuple[int, ...]
    height: int
    bound: int
    tried: int  # arrangements looked at

    @property
    def optimal(self) -> bool:
        """Whether it is proven that nothing is lower."""
        return self.height == self.bound


def rounded(size: int, alignment: int) -> int:
    """A size rounded up to the alignment."""
    return -(-size // alignment) * alignment


def usable(blocks: Sequence[Block], overlaps: Sequence[Overlap]) -> list[Overlap]:
    """The overlaps of blocks that end where another begins; no other block can be overwritten."""
    return [
        one
        for one in overlaps
        if blocks[one.reader].first < blocks[one.writer].first == blocks[one.reader].last
    ]


def height_of(blocks: Sequence[Block], offsets: Sequence[int], alignment: int = 1) -> int:
    """The highest end of a block."""
    ends = (
        offset + rounded(block.bytes, alignment)
        for block, offset in zip(blocks, offsets, strict=True)
    )
    return max(ends, default=0)


def least_union(writer: int, reader: int, furthest: int) -> int:
    """The fewest bytes that hold two blocks of these sizes that overlap as far as they may."""
    if furthest >= 0:
        return max(writer, reader)
    return min(max(writer, reader - furthest), writer + reader)


def lower_bound(blocks: Sequence[Block], overlaps: Sequence[Overlap], alignment: int = 1) -> int:
    """A height that no arrangement is below: the highest of three bounds.

    The fullest moment, overlaps taken at their best; chains of blocks that each lie below the one
    before; and readers of one writer, which lie beside each other above its beginning.
    """
    overlaps = usable(blocks, overlaps)
    sizes = [rounded(block.bytes, alignment) for block in blocks]
    reach = {
        (overlap.writer, overlap.reader): 0
        if overlap.same_place_only
        else overlap.furthest // alignment * alignment
        for overlap in sorted(overlaps, key=lambda one: (-one.furthest, one.same_place_only))
    }
    return max(
        _fullest_moment(blocks, sizes, overlaps, alignment),
        _longest_chain(sizes, reach),
        _widest_fan(sizes, reach),
    )


def _longest_chain(sizes: Sequence[int], reach: Mapping[tuple[int, int], int]) -> int:
    """Below the sum of two that follow each other they must overlap, each below the last."""
    following = {reader: (writer, far) for (writer, reader), far in reach.items()}
    best = 0
    for start in following:
        current, depth, apart = start, 0, sizes[start]
        least: int | None = None  # the height from which two that follow each other can lie apart
        while current in following:
            writer, far = following[current]
            pair = sizes[current] + sizes[writer]
            least = pair if least is None else min(least, pair)
            if least <= best:
                break
            depth -= far
            apart = max(apart, sizes[start] + depth)
            best = max(best, min(least, apart))
            current = writer
    return best


def _widest_fan(sizes: Sequence[int], reach: Mapping[tuple[int, int], int]) -> int:
    """Readers of one writer that all overlap it lie one above the other, none below its limit."""
    readers: dict[int, list[int]] = {}
    for writer, reader in reach:
        readers.setdefault(writer, []).append(reader)
    best = 0
    for writer, given in readers.items():
        least = min(sizes[writer] + sizes[reader] for reader in given)
        lowest = max(0, min(-reach[writer, reader] for reader in given))
        best = max(best, min(least, lowest + sum(sizes[reader] for reader in given)))
    return best


def _fullest_moment(
    blocks: Sequence[Block], sizes: Sequence[int], overlaps: Sequence[Overlap], alignment: int
) -> int:
    """The most that is live at once; of blocks that hang together, only the largest pair counts."""
    pairs: dict[int, list[Overlap]] = {}
    for overlap in overlaps:
        pairs.setdefault(blocks[overlap.writer].first, []).append(overlap)
    changes: dict[int, int] = {}
    for block, size in zip(blocks, sizes, strict=True):
        changes[block.first] = changes.get(block.first, 0) + size
        changes[block.last + 1] = changes.get(block.last + 1, 0) - size
    live = best = 0
    for moment in sorted(changes):
        live += changes[moment]
        best = max(best, live - _saved(sizes, pairs.get(moment, ()), alignment))
    return best


def _saved(sizes: Sequence[int], overlaps: Sequence[Overlap], alignment: int) -> int:
    """The most bytes that the overlaps of one moment can save."""
    saved = 0
    for group in _groups(overlaps):
        members = {index for overlap in group for index in (overlap.writer, overlap.reader)}
        union = max(
            least_union(
                sizes[overlap.writer],
                sizes[overlap.reader],
                0 if overlap.same_place_only else overlap.furthest // alignment * alignment,
            )
            for overlap in group
        )
        saved += sum(sizes[index] for index in members) - union
    return saved


def _groups(overlaps: Sequence[Overlap]) -> list[list[Overlap]]:
    """Overlaps that hang together by a block that they share."""
    groups: list[tuple[set[int], list[Overlap]]] = []
    for overlap in overlaps:
        members, joined = {overlap.writer, overlap.reader}, [overlap]
        apart: list[tuple[set[int], list[Overlap]]] = []
        for others, group in groups:
            if others & members:
                members, joined = members | others, group + joined
            else:
                apart.append((others, group))
        groups = [*apart, (members, joined)]
    return [group for _, group in groups]
