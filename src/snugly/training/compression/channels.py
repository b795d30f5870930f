"""Which channels of a model have to go together: sets that grow as its graph is followed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

STAYS: Final = 0
"""The channel that stands for all that cannot be removed."""


@dataclass(frozen=True, slots=True)
class Traced:
    """What is known of a tensor: its shape, and which channels lie along one of its axes.

    Without channels, nothing of it can be removed.
    """

    shape: tuple[int | None, ...]
    axis: int | None = None
    channels: np.ndarray | None = field(default=None, compare=False)

    @property
    def last(self) -> int:
        """Its last axis."""
        return len(self.shape) - 1


class ChannelSets:
    """Channels as numbers, in sets of those that are removed together or not at all."""

    def __init__(self) -> None:
        self._parent: list[int] = [STAYS]
        self._stays: dict[int, str] = {STAYS: ""}
        self._because: dict[int, str] = {}

    def fresh(self, count: int) -> np.ndarray:
        """So many new channels, each in a set of its own."""
        import numpy as np

        first = len(self._parent)
        self._parent.extend(range(first, first + count))
        return np.arange(first, first + count)

    def fixed(self, count: int) -> np.ndarray:
        """So many channels that stay."""
        import numpy as np

        return np.full(count, STAYS)

    def root(self, channel: int) -> int:
        """The channel that stands for the set of this one."""
        parent = self._parent
        while parent[channel] != channel:
            parent[channel] = parent[parent[channel]]
            channel = parent[channel]
        return channel

    def roots(self, channels: Any) -> np.ndarray:
        """The same for many."""
        import numpy as np

        known, places = np.unique(np.asarray(channels), return_inverse=True)
        found = np.array([self.root(int(channel)) for channel in known], dtype=np.int64)
        return found[places].reshape(np.shape(channels))

    def join(self, some: Any, others: Any, because: str) -> None:
        """Let each of some go together with its counterpart; `because` is told where one stays."""
        import numpy as np

        pairs = np.stack([np.ravel(some), np.ravel(others)], axis=1)
        for one, other in np.unique(pairs, axis=0):
            self._join(int(one), int(other), because)

    def _join(self, one: int, other: int, because: str) -> None:
        first, second = self.root(one), self.root(other)
        if first == second:
            return
        for member, root, stays in ((one, first, second), (other, second, first)):
            if stays in self._stays and root not in self._stays:
                self._because.setdefault(member, self._stays[stays] or because)
        if second in self._stays:
            first, second = second, first
        self._parent[second] = first

    def keep(
        self, channels: Iterable[int] | None, because: str, *, above_all: bool = False
    ) -> None:
        """Never remove these; a reason `above_all` is told in the place of an earlier one."""
        import numpy as np

        for channel in np.unique(np.asarray([] if channels is None else channels, dtype=np.int64)):
            root = self.root(int(channel))
            if root not in self._stays:
                self._stays[root] = because
            if above_all or int(channel) not in self._because:
                self._because[int(channel)] = because

    def removable(self, channels: Any) -> np.ndarray:
        """Which of these may be removed at all."""
        import numpy as np

        roots = self.roots(channels)
        return ~np.isin(roots, np.array(list(self._stays)))

    def reason(self, channels: Iterable[int]) -> str:
        """Why these stay, as far as it was said."""
        for channel in channels:
            said = self._because.get(int(channel)) or self._stays.get(self.root(int(channel)))
            if said:
                return said
        return "they are coupled with channels that stay"
