"""The thread that looks: forgives what is not touched, frees, tells, asks to save, raises.

Private memory needs no watcher to be refused. It is for what grows by other ways: memory reserved
earlier and filled now, shared memory, files in /dev/shm, and many small requests.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from typing import TYPE_CHECKING, Final

from snugly.guarding import policy
from snugly.guarding.async_raise import call_in_main, is_main, raise_in, run_guarded, tell
from snugly.guarding.block_end import runs
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.guarding.enclosure import Block, Enclosure

NAME: Final = "snugly-guard"
FREE_EVERY: Final = 1.0
FREE_PART: Final = 20
"""Freeing may take a twentieth of the time: with millions of objects it takes a second."""
RAISE_EVERY: Final = 3.0
"""Seconds in which an exception may do its work before it is raised again."""
LONGEST_PAUSE: Final = 0.25
"""Waking up takes some 200 µs of one core, so nobody looks more often than can be needed."""
SHORTEST_PAUSE: Final = 0.002
"""Private memory is refused without us, so a guard inside need not look every millisecond."""

AFTERWARDS: Final = 0.05
"""Seconds in which native code that was about to set a limit has set it."""


class Watcher:
    """One thread for all guards of the process; it ends with the last one."""

    def __init__(self, enclosure: Enclosure) -> None:
        self._enclosure = enclosure
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    def start(self) -> None:
        """Look from now on, if nobody does."""
        with self._enclosure.lock:
            if self._thread is None or not self._thread.is_alive():
                self._wake.clear()
                self._thread = threading.Thread(
                    target=self._run, name=NAME, daemon=True, args=(self._wake,)
                )
                self._thread.start()

    def stop(self) -> None:
        """End, if no guard is left."""
        with self._enclosure.lock:
            if not self._enclosure.active and self._thread is not None:
                self._wake.set()
                self._thread, self._wake = None, threading.Event()

    def _run(self, end: threading.Event) -> None:
        pause = SHORTEST_PAUSE
        while not end.wait(pause):
            try:
                pause = self._look()
            except MemoryError:
                gc.collect()  # ours was the request that found no room
        time.sleep(AFTERWARDS)
        self._enclosure.set_right()

    def _look(self) -> float:
        enclosure = self._enclosure
        with enclosure.lock:
            if not enclosure.active:
                return LONGEST_PAUSE
            look = enclosure.look()
            enclosure.adjust(look)
            self._leave_ended()
            if not enclosure.active:
                return LONGEST_PAUSE
            blocks, limit, left = list(enclosure.blocks), enclosure.limit, enclosure.left(look)
        if look.held > policy.pressure_at(limit):
            for block in blocks:
                self._attend(block, look.held)
        return min(max(left / policy.FASTEST_GROWTH, SHORTEST_PAUSE), LONGEST_PAUSE)

    def _leave_ended(self) -> None:
        """Leave blocks whose exception struck while they were left, before their end was noted."""
        for block in list(self._enclosure.blocks):
            if block.raised is not None and not runs(block.thread, block.frame, block.entered_at):
                self._enclosure.leave(block)

    def _attend(self, block: Block, held: int) -> None:
        stage = policy.stage(block.limit, held)
        if stage == "calm":
            return
        now = time.monotonic()
        if now >= block.free_next:
            self._free(block, held)
            took = time.monotonic() - now
            block.free_next = time.monotonic() + max(FREE_EVERY, FREE_PART * took)
            with self._enclosure.lock:
                if not self._enclosure.active:
                    return  # it ended meanwhile, and nothing can be read any more
                held = self._enclosure.look().held
            stage = policy.stage(block.limit, held)
        if stage != "calm" and not block.asked and block.on_pressure is not None:
            block.asked = True
            if is_main(block.thread):
                call_in_main(block.on_pressure)
            else:
                run_guarded(block.on_pressure)
        if stage == "over":
            self._raise(block, held, now)

    def _free(self, block: Block, held: int) -> None:
        """Say it once; then free what nobody needs and what the C library hoards."""
        if not block.warned:
            block.warned = True
            tell(
                f"the process holds {Size(held)} (measured), close to the guard's limit of"
                f" {Size(block.limit)}; what can be freed is freed",
                block.thread,
            )
        gc.collect()
        self._enclosure.release()
        give_back()

    def _raise(self, block: Block, held: int, now: float) -> None:
        enclosure = self._enclosure
        with enclosure.lock:
            if block not in enclosure.blocks:
                return
            if block.raised is not None and now - block.raised < RAISE_EVERY:
                return
            block.raised = now
            message = (
                f"the process holds {Size(held)} (measured), more than the guard's limit of"
                f" {Size(block.limit)}"
            )
            raise_in(block.thread, message)
        enclosure.interrupt()


def stop_threads(block: Block, message: str) -> None:
    """Raise in the threads that a stopped block started and left behind: they would grow on.

    Not before it has ended: a thread that dies at the wrong place lets others wait for ever.
    """
    for thread in threading.enumerate():
        if thread.ident not in {*block.others, block.thread, None} and thread.name != NAME:
            raise_in(int(thread.ident or 0), message)


def give_back() -> None:
    """Ask the C library to give freed memory back to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
