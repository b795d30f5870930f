"""Which name of one run is which name of another, where only their numbers differ.

Keras counts: the second Dense layer that a process makes is `dense_1`, whichever model it belongs
to. The same model built twice, or built after another one, has other numbers. Names are paired,
never joined: two layers of one run stay two.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Pair = tuple[str | None, str | None]

_NUMBER: Final = re.compile(r"_(\d{1,9})(?=/|$)")
_MOST_PAIRS: Final = 250_000
"""Of one stem, to be weighed against one another; beyond, equal names alone are paired."""


def match(before: Mapping[str, int], after: Mapping[str, int]) -> list[Pair]:
    """Pairs of names with their bytes on either side; `None` where the other side has no such.

    Equal names are the same, unless both sides have names that the other lacks: then numbers may
    have moved, and of the ways to pair them in their order the one is taken that leaves the least
    change; equal names win a tie.
    """
    pairs: list[Pair] = []
    old_by_stem, new_by_stem = _by_stem(before), _by_stem(after)
    for stem in {**old_by_stem, **new_by_stem}:
        old, new = old_by_stem.get(stem, []), new_by_stem.get(stem, [])
        pairs += _match_stem(old, new, before, after)
    return pairs


def _match_stem(
    old: Sequence[str], new: Sequence[str], before: Mapping[str, int], after: Mapping[str, int]
) -> list[Pair]:
    same = _same_names(old, new)
    missing = set(old) - set(new)
    added = set(new) - set(old)
    if not missing or not added or len(old) * len(new) > _MOST_PAIRS:
        return same
    moved = _in_order(old, new, before, after)
    return moved if _cost(moved, before, after) < _cost(same, before, after) else same


def _same_names(old: Sequence[str], new: Sequence[str]) -> list[Pair]:
    present, known = set(new), set(old)
    return [
        *((name, name if name in present else None) for name in old),
        *((None, name) for name in new if name not in known),
    ]


def _in_order(
    old: Sequence[str], new: Sequence[str], before: Mapping[str, int], after: Mapping[str, int]
) -> list[Pair]:
    """The pairing in order that leaves the least change: an alignment, as of two sequences."""
    sizes_old, sizes_new = [before[name] for name in old], [after[name] for name in new]
    # cost[i][j]: the least change when the first i and the first j names have been dealt with
    cost = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, size in enumerate(sizes_old, start=1):
        cost[i][0] = cost[i - 1][0] + size
    for j, size in enumerate(sizes_new, start=1):
        cost[0][j] = cost[0][j - 1] + size
    for i, size_old in enumerate(sizes_old, start=1):
        for j, size_new in enumerate(sizes_new, start=1):
            cost[i][j] = min(
                cost[i - 1][j - 1] + abs(size_old - size_new),
                cost[i - 1][j] + size_old,
                cost[i][j - 1] + size_new,
            )
    pairs: list[Pair] = []
    i, j = len(old), len(new)
    while i or j:
        if i and j and cost[i][j] == cost[i - 1][j - 1] + abs(sizes_old[i - 1] - sizes_new[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((old[i], new[j]))
        elif i and cost[i][j] == cost[i - 1][j] + sizes_old[i - 1]:
            i -= 1
            pairs.append((old[i], None))
        else:
            j -= 1
            pairs.append((None, new[j]))
    return pairs[::-1]


def _cost(pairs: Sequence[Pair], before: Mapping[str, int], after: Mapping[str, int]) -> int:
    return sum(
        abs((0 if old is None else before[old]) - (0 if new is None else after[new]))
        for old, new in pairs
    )


def _by_stem(names: Mapping[str, int]) -> dict[str, list[str]]:
    """Names without their numbers, each with the names that have it, in the order of numbers."""
    stems: dict[str, list[str]] = defaultdict(list)
    for name in names:
        stems[_NUMBER.sub("", name)].append(name)
    for members in stems.values():
        members.sort(key=_numbers)
    return stems


def _numbers(name: str) -> tuple[tuple[int, ...], str]:
    """`dense` comes before `dense_1`: each part's number, or -1 where it has none."""
    found = (_NUMBER.search(part) for part in name.split("/"))
    return tuple(-1 if number is None else int(number[1]) for number in found), name
