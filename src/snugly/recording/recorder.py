"""Recorder: listens to a program from inside its process and writes down what it hears.

What it writes is raw (`frames.py`): the trace of each window, who called, who holds which buffer,
samples. `assemble.py` makes a Record of it, later and elsewhere.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from snugly.devices.process import ResidentPeak, resident_bytes
from snugly.readers.xplane import string_names
from snugly.recording import allocator
from snugly.recording.calls import CallLog
from snugly.recording.frames import FrameWriter
from snugly.recording.importing import when_imported
from snugly.recording.naming import Names
from snugly.recording.sampling import Sampler
from snugly.recording.tracing import TraceSession, give_way
from snugly.recording.variables import Variables
from snugly.recording.windows import NEVER, SECOND, Plan, rest_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

_BYTES_PER_EVENT: Final = 110  # of an XSpace that holds little but allocator events
_OVERDUE: Final = 5 * SECOND  # a call that lasts longer is cut into windows all the same


class Recorder:
    """One recording of this process, from `start` to `stop`."""

    def __init__(self, path: Path, plan: Plan, facts: Mapping[str, Any]) -> None:
        self._plan = plan
        self._writer = FrameWriter(path)
        self._facts = dict(facts)
        self._started = self._ended = time.time_ns()
        self._log = CallLog(self._between_calls)
        self._names = Names(self._log)
        self._variables = Variables()
        self._sampler = Sampler(self._write_samples, self._after_sample)
        self._session: TraceSession | None = None
        self._lock = threading.RLock()
        self._busy = False
        self._due = NEVER
        self._begun = self._traced = self._traced_peak = self._windows = self._places = 0
        self._rate = 0.0
        self._resolved: set[str] = set()
        self._undo: list[Callable[[], None]] = []
        self._notes: set[str] = set()
        self._main_thread = threading.get_ident()
        self._process = os.getpid()
        self._grown = _Grown()

    # ------------------------------------------------------------------------------- life

    def start(self, *, is_running: bool = False) -> None:
        """Begin. `is_running`: the program has begun before, and what it holds is looked at."""
        self._write("FACT", {**self._facts, "started": self._started})
        os.register_at_fork(after_in_child=self._forked)
        self._sampler.start()
        if self._plan.mode == "samples":
            return  # nobody listens, so nothing is slower
        when_imported("tensorflow", lambda _: self._tensorflow_loaded(is_running=is_running))
        when_imported("keras", lambda _: self._keras_loaded())

    def name_inputs(self, tensors: Iterable[Any]) -> None:
        """Tensors that the program is called with."""
        with self._quietly():
            for number, tensor in enumerate(tensors):
                self._variables.note_input(tensor, f"argument {number}")

    def mark_beginning(self) -> None:
        """From here on it counts: the peak is that of what follows."""
        for device in allocator.device_names():
            allocator.reset_peak(device)
        self._grown = _Grown()
        self._write("FACT", {"since": time.time_ns()})

    def stop(self, **facts: Any) -> None:
        """End the last window, write what the allocators say, and put everything back."""
        if os.getpid() != self._process:
            return
        with self._lock:
            peaks = _peaks()
            self._end_window()
            self._due = NEVER
            self._remove()
        self._sampler.stop()
        self._write(
            "FACT",
            {
                **facts,
                "peaks": peaks,
                # Before it is started, TensorFlow has no figures because it holds nothing.
                **({"grown": self._grown.read()} if allocator.is_started() else {}),
                "main_device": allocator.main_device(),
                "counts_everything": allocator.counts_everything(),
                "gpu_allocator": os.environ.get("TF_GPU_ALLOCATOR", ""),
                "ended": time.time_ns(),
                "notes": sorted(self._notes),
                "complete": True,
                **_versions(),
            },
        )
        self._writer.close()

    def _tensorflow_loaded(self, *, is_running: bool) -> None:
        self._log.install()
        self._names.watch_tensorflow()
        self._variables.watch()
        self._undo.append(give_way(self._pause, self._resume))
        if is_running:
            with self._quietly():
                self._variables.note_existing()
                if "keras" in sys.modules:
                    self._names.note_existing()
        self._begin_window()

    def _keras_loaded(self) -> None:
        self._names.watch_keras()
        self._variables.watch_keras()

    def _remove(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._variables.remove()
        self._names.remove()
        self._log.remove()

    def _forked(self) -> None:
        """In a forked child: this recording is the parent's."""
        self._writer.close()
        self._due, self._log.active = NEVER, False
        self._notes.clear()

    # ---------------------------------------------------------------------------- windows

    def _between_calls(self) -> None:
        """Before every call into TensorFlow, in whatever thread."""
        if self._busy:
            return
        if self._variables.has_unplaced and threading.get_ident() == self._main_thread:
            with self._quietly():
                self._variables.look()
        if time.time_ns() >= self._due and threading.get_ident() == self._main_thread:
            self._turn()

    def _after_sample(self, peak: int) -> None:
        """In the sampling thread: begin a window when the peak rises, cut one that is overdue."""
        now = time.time_ns()
        if self._session is None:
            paused = now - self._ended
            size = self._writer.size
            if self._plan.is_worth_a_window(peak, self._traced_peak, paused, size):
                self._due = min(self._due, now)
        elif now > self._due + _OVERDUE:
            self._turn()

    def _turn(self) -> None:
        """End the window that is due and begin the next, at once or after a pause."""
        with self._lock:
            now = time.time_ns()
            if now < self._due or self._process != os.getpid():
                return
            if self._session is not None:
                length = now - self._begun
                self._end_window()
                after = time.time_ns()
                owed = rest_for(self._windows, length, after - now)
                elapsed = after - self._started
                pause = self._plan.pause(self._traced, elapsed, self._writer.size, owed)
                if pause:
                    self._due = min(after + pause, NEVER)
                    return
            self._begin_window()

    def _begin_window(self) -> None:
        session = TraceSession()
        self._begun = time.time_ns()
        if not session.start():
            self._notes.add("another profiler was running: some of the run was not traced")
            self._due = self._begun + SECOND
            return
        self._session = session
        self._due = self._begun + self._plan.length(self._windows, self._rate)
        self._log.active = True

    def _end_window(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        with self._quietly():
            data = session.stop()
            self._ended = now = time.time_ns()
            self._traced += now - self._begun
            self._traced_peak = max(self._traced_peak, *_peaks().values(), 0)
            self._rate = len(data) / _BYTES_PER_EVENT / max((now - self._begun) / SECOND, 1e-3)
            self._write_window(data, now)
            self._windows += 1

    def _pause(self) -> None:
        with self._lock:
            self._end_window()
            self._due = NEVER
        self._notes.add("the program ran a profiler of its own: that part was not traced")

    def _resume(self) -> None:
        self._due = 0

    def _quietly(self) -> _Quiet:
        return _Quiet(self)

    # ---------------------------------------------------------------------------- writing

    def _write_window(self, data: bytes, now: int) -> None:
        number = self._windows
        # Said with every window: a run that is killed says nothing at its end.
        self._write("FACT", {"main_device": allocator.main_device(), **_versions()})
        names = string_names(data) - self._resolved if data else set()
        self._resolved |= names
        places = self._log.places.names[self._places :]
        self._write("NAME", {"first": self._places, "places": places})
        self._places += len(places)
        self._write_table("CALL", self._log.take(), window=number)
        for origins in batched(self._names.origins(sorted(names))):
            self._write("ORIG", {"origins": origins})
        for held in batched(held.to_data() for held in self._variables.take()):
            self._write("HELD", {"held": held})
        # Last, so that a window is there with all that explains it or not at all.
        self._write("XPLN", {"window": number, "begin": self._begun, "end": now}, data)

    def _write_samples(self, columns: dict[str, NDArray[np.int64]]) -> None:
        with self._lock:
            self._write_table("SAMP", columns)

    def _write(self, tag: str, header: Mapping[str, Any], body: bytes = b"") -> None:
        """Write, or give up writing: a full disk is not the program's fault."""
        try:
            self._writer.write(tag, header, body)
        except OSError as problem:
            self._give_up(problem)

    def _write_table(self, tag: str, columns: Mapping[str, NDArray[Any]], **header: Any) -> None:
        try:
            self._writer.write_table(tag, columns, **header)
        except OSError as problem:
            self._give_up(problem)

    def _give_up(self, problem: OSError) -> None:
        self._writer.abandon()
        self._due = NEVER
        sys.stderr.write(f"snugly: the recording ends here: {problem.strerror or problem}\n")


class _Grown:
    """By how much the process has grown at most, for allocators that keep no figures."""

    def __init__(self) -> None:
        self._before = resident_bytes()
        self._peak = ResidentPeak()

    def read(self) -> int:
        return max(0, self._peak.read() - self._before)


class _Quiet:
    """While we ask TensorFlow ourselves, nobody listens."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        recorder = self._recorder
        self._was = recorder._busy, recorder._log.active  # noqa: SLF001 - its own
        recorder._busy, recorder._log.active = True, False  # noqa: SLF001

    def __exit__(self, *_: object) -> None:
        recorder = self._recorder
        recorder._busy, recorder._log.active = self._was  # noqa: SLF001
        if recorder._session is None:  # noqa: SLF001
            recorder._log.active = False  # noqa: SLF001


def batched(rows: Iterable[Any], size: int = 20_000) -> Iterator[list[Any]]:
    """Rows in lists that stay far below the longest header of a frame."""
    rows = iter(rows)
    while batch := list(islice(rows, size)):
        yield batch


def _peaks() -> dict[str, int]:
    """What each device's allocator says its peak was."""
    infos = {device: allocator.memory_info(device) for device in allocator.device_names()}
    return {device: info.peak for device, info in infos.items() if info is not None}


def _versions() -> dict[str, str]:
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("tensorflow", "keras"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            found[name] = str(version)
    return found
