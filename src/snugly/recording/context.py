"""`with snugly.record(path) as r:` records what a running process does inside the block."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from snugly.errors import InputError
from snugly.recording import allocator
from snugly.recording.file import cannot_write, read_record, write_record
from snugly.recording.recorder import Recorder
from snugly.recording.windows import Mode, Plan

if TYPE_CHECKING:
    from types import TracebackType

    from snugly.recording.record import Record

_running: list[Recording] = []


class Recording:
    """A record in the making. After the block it has all that a `Record` has."""

    def __init__(self, path: str | os.PathLike[str] | None, mode: Mode) -> None:
        self._path = None if path is None else Path(path)
        self._mode: Mode = mode
        self._recorder: Recorder | None = None
        self._raw = Path()
        self._record: Record | None = None

    def __enter__(self) -> Self:
        if _running:
            raise InputError(
                "this process is being recorded already", hint="leave the outer block first"
            )
        self._raw = self._raw_file()
        if not allocator.is_started():
            # TensorFlow reads it when it first needs an allocator, which is not its import.
            os.environ.setdefault(allocator.USE_BFC, "1")
        allocator.counts_everything()  # notes what TensorFlow will find
        self._recorder = Recorder(
            self._raw, Plan(self._mode), {"program": _program(), "mode": self._mode}
        )
        _running.append(self)
        self._recorder.start(is_running=allocator.is_started())
        self._recorder.mark_beginning()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        frames: TracebackType | None,
    ) -> None:
        assert self._recorder is not None
        _running.remove(self)
        try:
            self._recorder.stop()
            self._record = read_record(self._raw)
            if self._path is not None:
                write_record(self._record, self._path)
        finally:
            if self._path is None:
                self._raw.unlink(missing_ok=True)

    @property
    def record(self) -> Record:
        """The finished record."""
        if self._record is None:
            raise InputError("the record is not finished", hint="look at it after the `with` block")
        return self._record

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.record, name)

    def _raw_file(self) -> Path:
        if self._path is None:
            handle, name = tempfile.mkstemp(prefix="snugly-", suffix=".snugly")
            os.close(handle)
            return Path(name)
        try:
            with self._path.open("ab"):
                return self._path
        except OSError as problem:
            raise cannot_write(self._path, problem) from problem


def record(path: str | os.PathLike[str] | None = None, *, mode: Mode = "full") -> Recording:
    """Record what happens inside a `with` block of this process.

    ::

        with snugly.record("run.snugly") as r:
            model.fit(x, y)
        print(r.peak, r.parts)

    What was allocated before the block is named where a variable or a tensor in Python holds it.
    TensorFlow's count of the peak begins anew with the block. If TensorFlow was at work before with
    its default CPU allocator, tensors under 256 KiB cannot be seen, and without oneDNN none at all:
    then the peak is by how much the process grew. The record says so. Other
    processes, and lines on which layers were made before the block, cannot be seen either.

    Args:
        path: where to leave the record; without it, it is there in memory alone.
        mode: "full" traces every allocation, "windows" only now and then, "samples" none.
    """
    return Recording(path, mode)


def _program() -> str:
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(script).name if script else "interactive session"
