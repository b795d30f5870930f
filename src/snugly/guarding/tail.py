"""What a command writes to stderr: passed on at once, and its end kept."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST_TAIL: Final = 256 << 10
"""Bytes kept; tracebacks of TensorFlow take some 10 KiB."""

_CHUNK: Final = 1 << 16
_STEP: Final = 0.02


class ErrorTail:
    """Reads a pipe in a thread of its own until its end, hands everything on, keeps the tail.

    Reading never stops, not even when nobody takes what is handed on, so the command never waits
    for a reader that is gone.
    """

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target: int | None = target
        self._chunks: deque[bytes] = deque()
        self._kept = 0
        self.total = 0
        self._handing_on = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._pump, name="snugly-stderr", daemon=True)
        self._thread.start()

    def text(self) -> bytes:
        """The last bytes written, at most `LARGEST_TAIL`."""
        with self._lock:
            return b"".join(self._chunks)[-LARGEST_TAIL:]

    def finish(self, seconds: float, give_up: Callable[[], bool] = lambda: False) -> bool:
        """Wait until the pipe ends; False where somebody still has it open.

        Whoever reads what we hand on (a pager) may take as long as it likes; the pipe may be silent
        for so many seconds. `give_up` is asked now and then whether to wait on at all.
        """
        silent = 0.0
        while silent < seconds and not give_up():
            self._thread.join(_STEP)
            if not self._thread.is_alive():
                return True
            silent = 0.0 if self._handing_on else silent + _STEP
        return False

    def _pump(self) -> None:
        while True:
            try:
                chunk = os.read(self._source, _CHUNK)
            except OSError:  # EIO: how a terminal's other side says that it is closed
                chunk = b""
            if not chunk:
                break
            self._keep(chunk)
            self._handing_on = True
            self._hand_on(chunk)
            self._handing_on = False
        os.close(self._source)

    def _keep(self, chunk: bytes) -> None:
        with self._lock:
            self.total += len(chunk)
            self._chunks.append(chunk)
            self._kept += len(chunk)
            while self._kept - len(self._chunks[0]) >= LARGEST_TAIL:
                self._kept -= len(self._chunks.popleft())

    def _hand_on(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while self._target is not None and rest:
            try:
                rest = rest[os.write(self._target, rest) :]
            except BlockingIOError:
                _wait_until_writable(self._target)
            except OSError:
                self._target = None  # whoever listened has gone; the tail is still kept


def _wait_until_writable(target: int) -> None:
    import select

    select.select([], [target], [], 1.0)
