"""The limit that holds inside this process: one for all its guards, the tightest.

Private memory beyond it is refused by the kernel (soft RLIMIT_DATA, which needs no privilege and is
raised again afterwards), so a refusal needs nobody to look. A thread looks all the same: what was
reserved and never touched is forgiven, what grows by other ways is freed, told and stopped.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from snugly.guarding import policy
from snugly.guarding.async_raise import forget_raise
from snugly.guarding.limits import SUPERVISED
from snugly.guarding.new_handler import NewHandler
from snugly.guarding.own_memory import OwnLook, OwnMemory
from snugly.guarding.thread_stacks import keep_stacks

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from snugly.guarding.native_rescue import NativeRescue

_WAIT: Final = 0.1
"""Seconds for which memory must lie untouched before it is forgiven: 64 MiB take less to fill."""
_NOTICED: Final = 1 << 20
"""A soft limit is set anew where it would change by so much."""
_FREED: Final = 64 << 20


@dataclass(slots=True, eq=False)
class Block:
    """One guarded block, while it runs."""

    limit: int
    thread: int
    frame: FrameType | None
    on_pressure: Callable[[], None] | None = None
    offered: int = 0
    """What the machine could give when it began."""
    held: int = 0
    """What the process held then."""
    others: frozenset[int] = frozenset()
    """Threads that were there before it."""
    warned: bool = False
    asked: bool = False
    free_next: float = 0.0
    entered_at: int = 0
    """The instruction of its frame at which it began."""
    raised: float | None = None
    """When the exception was last sent to its thread."""


@dataclass(slots=True)
class _Limits:
    """Soft and hard RLIMIT_DATA as they were before the first guard."""

    soft: int
    hard: int


@dataclass(slots=True)
class Enclosure:
    """All guarded blocks of this process, and what holds for them together."""

    blocks: list[Block] = field(default_factory=list)
    lock: Any = field(default_factory=threading.RLock)
    interrupters: dict[int, Callable[[], None]] = field(default_factory=dict)
    """How to stop native calls that are under way, by the thread that makes them."""
    releasers: list[Callable[[], object]] = field(default_factory=list)
    """What gives memory back that libraries keep idle."""
    savers: dict[int, Callable[[], None]] = field(default_factory=dict)
    """What is to be saved when a guard has stopped the work, by a number of their own."""
    followers: list[Callable[[OwnLook], None]] = field(default_factory=list)
    """Allocators with limits of their own: told of every look."""
    finishers: list[Callable[[], None]] = field(default_factory=list)
    """What is to be done when the last block was left."""
    rescue: NativeRescue | None = None
    """What gives memory to native code that would crash without it."""
    _lifted: int = 0
    _untouched: list[tuple[float, int]] = field(default_factory=list)
    _last_held: int = 0
    _last_data: int = 0
    _calm_data: int = 0
    _memory: OwnMemory | None = None
    _before: _Limits | None = None
    _soft: int = 0
    _restored: _Limits | None = None
    """What the last guard set when it ended, …"""
    _softs: deque[int] = field(default_factory=lambda: deque(maxlen=16))
    _lent: deque[int] = field(default_factory=lambda: deque(maxlen=32))
    """… and what held shortly before: its own limits, and what native code might raise them to."""
    _handler: NewHandler | None = None

    @property
    def active(self) -> bool:
        """Whether any guard holds."""
        return bool(self.blocks)

    @property
    def limit(self) -> int:
        """The tightest limit of all guards; none where the last was just left in another thread."""
        return min((block.limit for block in self.blocks), default=sys.maxsize)

    def beside_tensors(self) -> int:
        """What tensors must leave to TensorFlow's kernels."""
        return policy.beside_tensors(self.limit, os.cpu_count() or 1)

    def look(self) -> OwnLook:
        """What the process holds now."""
        memory = self._memory
        if memory is None:
            memory = OwnMemory()
            look = memory.look()
            memory.close()
            return look
        return memory.look()

    def room(self) -> int:
        """What may still be held; negative above the limit."""
        return self.limit - self.look().held

    def left(self, look: OwnLook) -> int:
        """What may be asked for before somebody must look again: refused, or held above the limit.

        Half of it, so that no less than half of what was seen is left until then.
        """
        room = self.limit - look.held
        if self._before is None or self._soft == self._before.soft:  # it does not move with us
            return room // 2
        return min(room, self._soft - look.data) // 2

    def last_room(self) -> int:
        """The same as the watcher saw it last, at no cost."""
        return self.limit - self._last_held

    def refused_beyond(self) -> int:
        """How many bytes the kernel would still grant in one piece."""
        memory = self._memory
        return self._soft - memory.data() if memory is not None else sys.maxsize

    def enter(self, block: Block) -> None:
        """Let a block's limit hold from now on."""
        import resource

        with self.lock:
            if not self.blocks:
                keep_stacks()
                self._memory = OwnMemory()
                self.set_right()
                soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
                # A supervisor's limit moves: what it was is of no use, it sets it anew.
                self._before = _Limits(hard if SUPERVISED in os.environ else soft, hard)
                self._handler = self._handler or NewHandler()
            self.blocks.append(block)
            self.adjust(self.look())
            if self._handler is not None:
                self._handler.install()

    def leave(self, block: Block) -> None:
        """Let it no longer hold; the process's own limits are back with the last one."""
        with self.lock:
            if block.raised is not None:
                forget_raise(block.thread)  # first: it would strike in the midst of what follows
            if block in self.blocks:
                self.blocks.remove(block)
            elif self.blocks or self._before is None:
                return
            block.frame = None
            if self.blocks:
                self.adjust(self.look())
                return
            self._restore()
            for finish in self.finishers:
                finish()

    def adjust(self, look: OwnLook) -> None:
        """Let the kernel's limit follow what is held and reserved."""
        with self.lock:
            if not self.blocks or self._before is None:
                return
            self._last_held, self._last_data = look.held, look.data
            for follow in self.followers:
                follow(look)
            soft = policy.inside_limit(self._forgiven(look), self.limit)
            if look.held <= self.limit:
                self._calm_data = look.data
            elif self.followers:
                # Memory reserved earlier was filled; kernels' scratch must not pay for it.
                soft = max(soft, self._calm_data + self.beside_tensors())
            if self._before.soft >= 0:
                soft = min(soft, self._before.soft)
            # operator new may have raised it meanwhile, so a small change counts then.
            if self._lifted:
                soft = max(soft, policy.lifted_limit(look.data, self.blocks[0].offered))
            if self.rescue is not None:
                lifted = max(soft, look.data + self.beyond(look))
                self.rescue.allow(lifted, self._before.hard, soft)
                self._lent.extend(self.rescue.allowed)
            if abs(soft - self._soft) < _NOTICED and not self._was_raised():
                return
            self._soft = soft
            self._softs.append(soft)
            self._set(soft)
            if self._handler is not None:
                self._handler.follow(soft, self._before.hard, soft + policy.RESCUE)

    def beyond(self, look: OwnLook) -> int:
        """What native code that would crash without it may have in all, above what is held."""
        first = self.blocks[0]
        offered = max(first.offered - max(look.held - first.held, 0), 0)
        return policy.beyond(self.limit, look.held, offered)

    def forgive(self, look: OwnLook) -> None:
        """What is not touched at this look is forgiven at once: it was given back by ourselves."""
        with self.lock:
            self._untouched.clear()
            self.adjust(look)

    def notice_freed(self) -> None:
        """Let the limits follow at once where much was freed since the last look."""
        memory = self._memory
        try:
            much = memory is not None and memory.data() < self._last_data - _FREED
        except (OSError, ValueError, IndexError):
            return  # the last guard ended in another thread, which closed the files
        if much:
            self.adjust(self.look())

    def lift(self) -> None:
        """Let native code have what is there: it crashes where scratch memory is refused it.

        What has a limit of its own (tensors) keeps it, and the watcher still looks.
        """
        with self.lock:
            self._lifted += 1
            self.adjust(self.look())

    def lower(self) -> None:
        """The limit holds again."""
        with self.lock:
            self._lifted -= 1
            self.adjust(self.look())

    def release(self) -> None:
        """Give back what libraries keep idle."""
        for release in self.releasers:
            release()

    def _forgiven(self, look: OwnLook) -> int:
        """What is reserved and not touched, for some time already.

        A piece that is being filled is not touched yet either; forgiven at once, as much could be
        asked for a second time.
        """
        now = time.monotonic()
        self._untouched.append((now, look.data - look.held))
        while len(self._untouched) > 1 and now - self._untouched[1][0] > _WAIT:
            self._untouched.pop(0)
        return min(size for _, size in self._untouched)

    def save(self) -> None:
        """Save what was under way; once, for it is not under way any more."""
        savers = list(self.savers.values())
        self.savers.clear()
        for write in savers:
            write()

    def interrupt(self) -> None:
        """Stop native calls that can be stopped; what was stopped is not asked again."""
        for thread in list(self.interrupters):
            stop = self.interrupters.pop(thread, None)
            if stop is not None:
                stop()

    def forget(self) -> None:
        """In a forked child: the kernel's limit is inherited and stays, nobody looks any more."""
        self.blocks.clear()
        self.interrupters.clear()
        self.lock = threading.RLock()
        self._memory = self._before = None
        if self._handler is not None:
            self._handler.remove()

    def set_right(self) -> None:
        """Set the process's own limit again where native code has raised ours too late.

        It may be between its decision and the kernel when the last guard ends, and what it sets
        then would stay. Only what it could have set is changed: another value is somebody else's.
        """
        import resource

        with self.lock:
            restored = self._restored
            now = resource.getrlimit(resource.RLIMIT_DATA)[0]
            if self.blocks or restored is None or now == restored.soft:
                return
            is_raised = any(soft <= now <= soft + policy.RESCUE for soft in self._softs)
            if is_raised or now in self._lent:
                resource.setrlimit(resource.RLIMIT_DATA, (restored.soft, restored.hard))

    def _was_raised(self) -> bool:
        import resource

        return resource.getrlimit(resource.RLIMIT_DATA)[0] != self._soft

    def _before_hard(self) -> int:
        return self._before.hard if self._before is not None else -1

    def _set(self, soft: int) -> None:
        import resource

        hard = self._before_hard()
        resource.setrlimit(resource.RLIMIT_DATA, (soft if hard < 0 else min(soft, hard), hard))

    def _restore(self) -> None:
        if self._handler is not None:
            self._handler.remove()
        if self._before is not None:
            import resource

            if self.rescue is not None:  # one that is under way may still set it
                self.rescue.allow(self._before.soft, self._before.hard, self._before.soft)
            resource.setrlimit(resource.RLIMIT_DATA, (self._before.soft, self._before.hard))
            self._restored = self._before
        if self._memory is not None:
            self._memory.close()
        self._memory = self._before = None
        self._soft = 0
        self._untouched.clear()


ENCLOSURE: Final = Enclosure()
"""That of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ENCLOSURE.forget)
