"""Containers: lists, dictionaries, sets and deques that grow while the program runs.

Looks at every container the collector knows, now and then, and follows those that have become
longer. A container cannot be watched through a weak reference: it is known by its identity, and
each look begins anew.
"""

from __future__ import annotations

import gc
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING, Any

from snugly.recording.leaks.growth import Series
from snugly.recording.leaks.holders import CONTAINERS, is_bounded, names_of, roots
from snugly.recording.leaks.weight import Weight, weigh

if TYPE_CHECKING:
    from snugly.recording.leaks.holders import Name
    from snugly.recording.leaks.sites import Site

_EXACT = frozenset({list, dict, set, deque, OrderedDict, defaultdict})
# Keras and TensorFlow put lists of their own in the place of those that users give them.
_WRAPPED = frozenset({"TrackedList", "TrackedDict", "TrackedSet", "ListWrapper", "_DictWrapper"})
_SHORTEST = 4
_MOST_TYPES = 20_000
_MOST_FOLLOWED = 512
# Below this nobody's list is worth a search for its names.
_LIGHTEST_ITEM = 512
_LONG_ENOUGH_TO_NAME = 6
_LIGHT = (bool, int, float, type(None), type, FunctionType)


@dataclass(slots=True)
class Grown:
    """One container that has become longer."""

    identity: int
    keyed: bool
    lengths: Series = field(default_factory=Series)  # event → length
    item: Weight = field(default_factory=Weight)  # the newest item that was weighed
    names: list[Name] = field(default_factory=list)
    is_bounded: bool = False
    growths: int = 0
    first_event: int = 0
    last_event: int = 0
    seen_event: int = 0
    way: tuple[Site, ...] = ()  # the user's lines that were running when it had grown
    length: int = 0
    most: int = 0
    fell: bool = False
    _searches: int = 0

    def see(self, container: Any, length: int, event: int, way: tuple[Site, ...]) -> None:
        """Note a look at it."""
        if length > self.length:
            self.growths += 1
            self.last_event = event
            self.way = way or self.way
            self.most = max(self.most, length)
            self.weigh(container)
        elif length < self.length:
            self.fell = True
        self.length = length
        self.seen_event = event
        self.lengths.add(event, length)

    def weigh(self, container: Any) -> None:
        """Weigh the newest item, beside the one before it."""
        newest, before = last_two(container)
        weight = weigh(newest, before)
        # A list may be given something small for each large thing.
        if weight.bytes >= self.item.bytes // 2 or not self.item.parts:
            self.item = weight

    def find_names(self, container: Any) -> None:
        """Ask for its names, once it is worth it; twice, because names come and go."""
        heavy = self.item.bytes >= _LIGHTEST_ITEM or self.item.tensor_count
        if not heavy or self.length < _LONG_ENOUGH_TO_NAME or self._searches > 1:
            return
        self._searches += 1
        self.is_bounded = is_bounded(container)
        self.names = list(dict.fromkeys([*self.names, *names_of(container)]))


class Containers:
    """The containers of the program, as they were at each look."""

    def __init__(self) -> None:
        self._lengths: dict[int, tuple[int, int]] = {}  # length, and the event it was seen at
        self._followed: dict[int, Grown] = {}
        self._past: deque[Grown] = deque(maxlen=_MOST_FOLLOWED)
        self.looks = 0

    @property
    def grown(self) -> list[Grown]:
        """All that have grown; those that are gone still tell of the loop they grew in."""
        return [*self._past, *self._followed.values()]

    def look(self, event: int, way: tuple[Site, ...], ours: set[int], *, last: bool) -> None:
        """Look at all containers, and follow those that have grown since the last look.

        The last look also takes in those that it meets for the first time.
        """
        self.looks += 1
        lengths: dict[int, tuple[int, int]] = {}
        for each in _containers():
            identity = id(each)
            length = len(each)
            followed = self._followed.get(identity)
            if identity in lengths or identity in ours or (length < _SHORTEST and not followed):
                continue
            known = self._lengths.get(identity)
            lengths[identity] = (length, event)
            if followed is None:
                followed = self._take_in(each, known, last=last)
            if followed is not None:
                followed.see(each, length, event, way)
                if followed.growths > 1 or last:
                    followed.find_names(each)
        for identity in self._followed.keys() - lengths.keys():
            gone = self._followed.pop(identity)
            if gone.growths > 1:
                self._past.append(gone)
        self._lengths = lengths

    def _take_in(self, each: Any, known: tuple[int, int] | None, *, last: bool) -> Grown | None:
        if len(self._followed) >= _MOST_FOLLOWED:
            return None
        identity = id(each)
        if known is not None and len(each) > known[0] and _is_heavy(each):
            length, event = known
            grown = Grown(identity, isinstance(each, dict), length=length, first_event=event)
            grown.lengths.add(event, length)
        elif known is None and last and len(each) >= _LONG_ENOUGH_TO_NAME and _is_heavy(each):
            grown = Grown(identity, isinstance(each, dict))
        else:
            return None
        self._followed[identity] = grown
        return grown


def _is_heavy(container: Any) -> bool:
    """Whether its newest item is worth following. Most that grows is TensorFlow's, and light."""
    newest, before = last_two(container)
    if isinstance(newest, _LIGHT) or (isinstance(newest, str) and len(newest) < _LIGHTEST_ITEM):
        return False
    weight = weigh(newest, before)
    return bool(weight.tensor_count) or weight.bytes >= _LIGHTEST_ITEM


def _containers() -> list[Any]:
    found = [each for each in gc.get_objects() if _is_followed[type(each)]]
    return [*found, *roots()]


class _Followed(dict[type, bool]):
    """Which types are followed; asked for every object there is, so each type is judged once."""

    def __missing__(self, kind: type) -> bool:
        if len(self) > _MOST_TYPES:
            self.clear()
        wrapped = kind.__name__ in _WRAPPED and issubclass(kind, CONTAINERS)
        self[kind] = kind in _EXACT or wrapped
        return self[kind]


_is_followed = _Followed()


def last_two(container: Any) -> tuple[Any, Any]:
    """The newest item and the one before it; a set has no order, so any two."""
    if isinstance(container, dict):
        values = iter(reversed(container.values()))
    elif isinstance(container, (list, deque)):
        values = iter(reversed(container))
    else:
        values = iter(container)
    return next(values, None), next(values, None)
