"""Does a batch run inside a limit? Tried in processes of their own, of which nothing is recorded.

`measure` says where every byte went, for a good part of the time that a short run takes. Here only
the peak is wanted, or that it does not run; and while one batch is tried, the process for the next
one imports TensorFlow already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from snugly.devices.process import is_asleep
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.recording.allocator import CPU_LIMIT, USE_BFC
from snugly.recording.carrying import EXCEEDED, Task, pack
from snugly.recording.measuring import failure

if TYPE_CHECKING:
    from snugly.units import Size

_GLANCE: Final = 0.1
_ASLEEP: Final = 2.0
"""Seconds without a thread that runs, after which a step is given up.

TensorFlow's allocator lets an operation wait ten seconds for memory that others may free. Once all
of them wait, nobody will.
"""


class Trials:
    """At most so many tries of one program; `with` ends what is left of its processes."""

    def __init__(self, task: Task, limit: Size, most: int) -> None:
        self._limit = int(limit) >> 20
        if not self._limit:
            raise InputError(f"the limit must be at least 1 MiB, not {limit}", code="SNG004")
        self._left = most
        self._folder = tempfile.TemporaryDirectory(prefix="snugly-")
        self._place = Path(self._folder.name)
        try:
            (self._place / "request").write_bytes(pack(task))
        except BaseException:
            self._folder.cleanup()
            raise
        self._ready = self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end(self._ready)
        self._folder.cleanup()

    def peak(self, batch: int) -> int | None:
        """Take the program's steps with a batch; the most it held, None where nobody counted.

        Raises:
            MemoryLimitExceeded: It does not run inside the limit.
        """
        child, self._ready = self._ready, None
        assert child is not None, "more tries than were announced"
        try:
            with suppress(BrokenPipeError):  # it died; how, its exit code tells
                child.ask(batch)
            self._ready = self._begin()
            code = _ended(child)
        finally:
            self._end(child)
        if code is None:
            raise MemoryLimitExceeded(
                f"with a batch of {batch} every operation waits for memory that none of them frees",
                code=EXCEEDED,
            )
        if code != 0:
            code = 128 - code if code < 0 else code
            raise failure(code, child.answer, child.errors, self._limit)
        return json.loads(child.answer.read_text())["peak"]

    def _begin(self) -> _Child | None:
        if not self._left:
            return None
        self._left -= 1
        return _Child(self._place, self._left, self._limit)

    @staticmethod
    def _end(child: _Child | None) -> None:
        if child is not None:
            child.process.kill()
            child.process.communicate()  # closes what is open


class _Child:
    """A process that waits for a batch size."""

    def __init__(self, folder: Path, number: int, limit: int) -> None:
        self.answer, self.errors = folder / f"answer-{number}", folder / f"stderr-{number}"
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
        self.word = folder / f"word-{number}"
        words = [folder / "request", self.answer, self.word, str(limit)]
        with self.errors.open("wb") as errors:
            self.process: subprocess.Popen[Any] = subprocess.Popen(  # noqa: S603 - this Python
                [sys.executable, *flags, "-m", "snugly.recording.trial", *words],
                env=os.environ | {USE_BFC: "1", CPU_LIMIT: str(limit)},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    def ask(self, batch: int) -> None:
        """Tell it what to try."""
        assert self.process.stdin is not None
        with self.process.stdin as words:
            words.write(f"{batch}\n".encode())

    def is_stepping_on_cpu(self) -> bool:
        """Whether it has left word that it begins, and that it has no GPU."""
        return self.word.exists() and self.word.read_text().startswith("CPU")


def _ended(child: _Child) -> int | None:
    """The exit code; None for a child that fell asleep in the middle of a step on a CPU.

    On a GPU threads may sleep while the card works.
    """
    awake = time.monotonic()
    while True:
        with suppress(subprocess.TimeoutExpired):
            return child.process.wait(_GLANCE)
        if not is_asleep(child.process.pid) or not child.is_stepping_on_cpu():
            awake = time.monotonic()
        elif time.monotonic() - awake > _ASLEEP:
            return None
