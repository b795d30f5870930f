"""Stacks in hand for threads that native code starts when memory has ended.

TensorFlow aborts where it cannot start a thread. A stack is memory like any other (8 MiB), so the
guard's limit can refuse it. The C library keeps stacks of threads that have ended, up to 40 MiB of
them, and takes those first: so a few threads are started and ended before the limit holds. What
they reserve is never touched, which the guard forgives.
"""

from __future__ import annotations

import _thread
import threading
from typing import Final

STACKS: Final = 4
"""Four of 8 MiB with their guard pages are what glibc's cache of 40 MiB holds."""
_PATIENCE: Final = 1.0


def keep_stacks(count: int = STACKS) -> int:
    """Start so many threads at once and let them end; how many there could be."""
    ready, go = threading.Semaphore(0), threading.Event()

    def wait() -> None:
        ready.release()
        go.wait(_PATIENCE)

    started = 0
    try:
        for _ in range(count):
            # Not `threading.Thread`: nobody else should see these.
            _thread.start_new_thread(wait, ())
            started += 1
    except RuntimeError:
        pass  # there is no room even now
    for _ in range(started):
        ready.acquire(timeout=_PATIENCE)
    go.set()
    return started
