"""Look at an arrangement from scratch: does every pair of blocks keep its distance?

This shares nothing with the search: every pair is looked at by itself, in bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.planning.overlap.problem import Block, Overlap


def faults_of(
    blocks: Sequence[Block],
    overlaps: Sequence[Overlap],
    offsets: Sequence[int],
    *,
    alignment: int = 1,
) -> list[str]:
    """What is wrong with an arrangement, in sentences; nothing, where it is sound."""
    if len(offsets) != len(blocks):
        return [f"there are {len(blocks)} blocks and {len(offsets)} offsets"]
    faults: list[str] = []
    for block, offset in zip(blocks, offsets, strict=True):
        if offset < 0:
            faults.append(f"{block.name} begins below 0, at {offset}")
        if offset % alignment:
            faults.append(f"{block.name} at {offset} is not at a multiple of {alignment}")
    allowed: dict[tuple[int, int], list[Overlap]] = {}
    for overlap in overlaps:
        allowed.setdefault((overlap.writer, overlap.reader), []).append(overlap)
    order = sorted(range(len(blocks)), key=lambda index: blocks[index].first)
    live: list[int] = []
    for index in order:
        live = [other for other in live if blocks[other].last >= blocks[index].first]
        faults += [
            f"{blocks[index].name} and {blocks[other].name} are live at once and share bytes"
            for other in live
            if _share(blocks, offsets, index, other)
            and not _may(blocks, offsets, allowed.get((index, other), []), index, other)
            and not _may(blocks, offsets, allowed.get((other, index), []), other, index)
        ]
        live.append(index)
    return faults


def require_sound(
    blocks: Sequence[Block],
    overlaps: Sequence[Overlap],
    offsets: Sequence[int],
    *,
    alignment: int = 1,
) -> None:
    """Refuse an arrangement that is wrong: no search's answer is given out unseen."""
    faults = faults_of(blocks, overlaps, offsets, alignment=alignment)
    if faults:
        raise RuntimeError(f"an arrangement was found that is wrong: {faults[0]}")


def _share(blocks: Sequence[Block], offsets: Sequence[int], one: int, other: int) -> bool:
    begin = max(offsets[one], offsets[other])
    end = min(offsets[one] + blocks[one].bytes, offsets[other] + blocks[other].bytes)
    return begin < end


def _may(
    blocks: Sequence[Block],
    offsets: Sequence[int],
    overlaps: Sequence[Overlap],
    writer: int,
    reader: int,
) -> bool:
    """Whether every overlap that is stated for this pair is kept, and there is one."""
    if not overlaps or blocks[reader].last != blocks[writer].first:
        return False
    distance = offsets[writer] - offsets[reader]
    return all(
        distance == 0 if overlap.same_place_only else distance <= overlap.furthest
        for overlap in overlaps
    )
