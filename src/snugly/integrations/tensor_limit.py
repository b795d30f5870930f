"""The limit of TensorFlow's tensors while a guard holds: what they may take, of what is left.

Memory that the allocator took earlier and has idle is no new request, so neither the kernel nor the
allocator would refuse it. It is given back when a guard begins, and what of it exceeds the limit is
occupied by tensors that are never filled, until the guard ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from snugly.guarding.enclosure import ENCLOSURE
from snugly.integrations.idle_memory import keep_all_but, release_idle_memory
from snugly.integrations.tensor_allocator import find_tensor_allocator
from snugly.integrations.tensor_refusals import peak_bytes
from snugly.recording.allocator import is_started

if TYPE_CHECKING:
    from snugly.guarding.own_memory import OwnLook
    from snugly.integrations.tensor_allocator import TensorAllocator

_MUCH: Final = 256 << 20
"""Idle memory below this is left alone: giving it back takes a tenth of a second, and shows in
TensorFlow's own figure of its peak."""


@dataclass
class TensorLimit:
    """What tensors may have."""

    allocator: TensorAllocator | None = None
    _plugs: list[Any] = field(default_factory=list)
    _searched: int = 0
    _searching: bool = False
    _top: int = 0
    """What the allocator may have in all, as it was when the guard began."""
    _beside: int = 0
    """What the process had reserved beside them then."""

    def search(self) -> None:
        """Find the allocator: it is there once TensorFlow has been used."""
        if self._searching or not is_started():
            return
        self._searched += 1
        if self._searched & (self._searched - 1):
            return  # ever more seldom
        self._searching = True  # looking makes a tensor, which comes here again
        try:
            self.allocator = find_tensor_allocator()
            if self.allocator is not None:
                self._begin(self.allocator)
        finally:
            self._searching = False

    def _begin(self, allocator: TensorAllocator) -> None:
        allocator.refuse_at_once()
        pieces = release_idle_memory(allocator) if allocator.idle > _MUCH else []
        look, limit = ENCLOSURE.look(), ENCLOSURE.limit
        allowed = max(limit - look.held - ENCLOSURE.beside_tensors(), 0)
        open_again, pieces_given_back = 0, bool(pieces)
        if pieces:
            self._plugs = keep_all_but(pieces, allowed)
            open_again = allocator.idle
        self._top = allocator.pool + max(allowed - open_again, 0)
        self._beside = look.data - allocator.pool
        if pieces_given_back:
            ENCLOSURE.forgive(look)
        self.follow(look)

    def follow(self, look: OwnLook) -> None:
        """Let tensors have what is left, less what TensorFlow needs beside them.

        What is handed out and not filled yet shows nowhere, so no look may allow more than the
        first did, but for what was freed elsewhere since.
        """
        allocator = self.allocator
        if allocator is None:
            return
        freed = max(self._beside - (look.data - allocator.pool), 0)
        left = max(ENCLOSURE.limit - look.held - ENCLOSURE.beside_tensors(), 0)
        allocator.allow(min(self._top + freed, allocator.pool + left))
        if ENCLOSURE.rescue is not None:
            most = allocator.pool + ENCLOSURE.beyond(look)
            ENCLOSURE.rescue.allow_tensors(allocator.limit_address, most)

    def needed(self, before: int) -> int:
        """What was handed out at most beyond `before`; ours that only fill idle memory left out."""
        beyond = peak_bytes() - before
        if self.allocator is not None:
            beyond = min(beyond, self.allocator.pool - before)
        return max(beyond, 0)

    def more(self) -> int | None:
        """How much more the allocator may take; None where it is not known."""
        return None if self.allocator is None else self.allocator.more

    def end(self) -> None:
        """Tensors are limited by nothing of ours any more."""
        if self.allocator is not None:
            self.allocator.restore()
        self.allocator = None
        self._plugs = []
        self._searched = 0
