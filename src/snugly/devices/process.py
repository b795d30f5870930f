"""What this process holds right now: of the host's memory, and of an NVIDIA card's.

Made to be asked often, from any thread: reading the resident set takes some 10 µs, and NVML is
started once and kept. Nothing here loads TensorFlow or makes a CUDA context.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Final
from weakref import WeakSet

_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_RESIDENT_FIELD: Final = 1  # of /proc/self/statm: size, resident, shared, … in pages (proc(5))
_RESET_PEAK: Final = b"5"  # clear_refs: "reset the peak resident set size" (proc(5), Linux 4.0)


def resident_bytes() -> int:
    """How much of the host's memory this process occupies now (its resident set)."""
    try:
        # Opened anew each time: a file kept open would tell of the parent after a fork.
        with open("/proc/self/statm", "rb", buffering=0) as file:  # noqa: PTH123 - 4 µs less
            return int(file.read(128).split()[_RESIDENT_FIELD]) * _PAGE
    except OSError:
        return _resident_by_psutil()


def peak_resident_bytes() -> int:
    """The most this process has occupied since it began, or since `reset_peak_resident`."""
    try:
        with open("/proc/self/status", "rb", buffering=0) as file:  # noqa: PTH123 - as above
            for line in file.read(4096).splitlines():
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024  # "VmHWM:   12345 kB"
    except OSError:
        pass
    return _peak_by_system()


def reset_peak_resident() -> bool:
    """Let `peak_resident_bytes` count from now on; False where the system does not allow it.

    The system keeps one peak a process. A `ResidentPeak` made earlier is told of it beforehand.
    """
    reached = peak_resident_bytes()
    with _lock:
        for peak in _watching:
            peak.note(reached)
    try:
        with open("/proc/self/clear_refs", "wb", buffering=0) as file:  # noqa: PTH123 - as above
            file.write(_RESET_PEAK)
    except OSError:
        return False
    return True


class ResidentPeak:
    """The most this process has occupied since this was made, whoever resets the peak meanwhile.

    `exact` is False where the system does not let the peak be reset (outside Linux, in some
    sandboxes): then a rise that ended before it was read, and stayed below an earlier peak, is
    missed.
    """

    def __init__(self) -> None:
        self._highest = resident_bytes()
        self.exact = reset_peak_resident()
        self._earlier = 0 if self.exact else peak_resident_bytes()
        with _lock:
            _watching.add(self)

    def read(self) -> int:
        """The peak so far, in bytes."""
        self.note(peak_resident_bytes())
        return self._highest

    def note(self, reached: int) -> None:
        """Take in what the system says before somebody resets it."""
        known = reached if reached > self._earlier else resident_bytes()
        self._highest = max(self._highest, known)


_lock = threading.Lock()
_watching: WeakSet[ResidentPeak] = WeakSet()


def children_resident_bytes() -> int:
    """What the processes started by this one occupy, and those started by them.

    Pages that they share with this process or one another are counted in each. Takes milliseconds.
    """
    import psutil

    occupied = 0
    for child in psutil.Process().children(recursive=True):
        try:
            occupied += child.memory_info().rss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it ended while we asked
    return occupied


def is_asleep(process: int) -> bool:
    """Whether all threads of a process wait for something that is neither the disk nor a core.

    False where the system does not say (outside Linux), and of a process that is gone.
    """
    try:
        names = os.listdir(f"/proc/{process}/task")  # noqa: PTH208 - names are all it takes
        return all(_state(process, name) == b"S" for name in names)
    except OSError:
        return False


def _state(process: int, thread: str) -> bytes:
    with open(f"/proc/{process}/task/{thread}/stat", "rb", buffering=0) as file:  # noqa: PTH123
        # "123 (a name) S 1 …": the name may have brackets of its own (proc(5)).
        return file.read(512).rpartition(b")")[2].split()[0]


def card_bytes(index: int = 0) -> int | None:
    """What this process occupies on an NVIDIA card, context and libraries with it.

    Args:
        index: The card's number as TensorFlow counts: the n-th of CUDA_VISIBLE_DEVICES.

    None without a driver or card, before the process has used the card, and where the driver does
    not say whose memory is whose (inside some containers, and on a Jetson).
    """
    return _cards().of_process(index)


def card_in_use(index: int = 0) -> int | None:
    """What all processes together occupy on an NVIDIA card; None without a driver or card."""
    return _cards().in_use(index)


class _Cards:
    """NVML, started once for one process, with the handles of cards asked for."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.handles: dict[int, Any] = {}
        self.library: Any = None
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return  # no driver; none will appear while the process runs
        self.library = pynvml

    def of_process(self, index: int) -> int | None:
        handle = self._handle(index)
        if handle is None:
            return None
        try:
            users = self.library.nvmlDeviceGetComputeRunningProcesses(handle)
        except self.library.NVMLError:
            return None
        own = [user.usedGpuMemory for user in users if user.pid == self.process]
        known = [used for used in own if used is not None]
        return sum(known) if known else None

    def in_use(self, index: int) -> int | None:
        handle = self._handle(index)
        if handle is None:
            return None
        try:
            return int(self.library.nvmlDeviceGetMemoryInfo(handle).used)
        except self.library.NVMLError:
            return None

    def _handle(self, index: int) -> Any:
        if self.library is None:
            return None
        if index not in self.handles:
            try:
                self.handles[index] = self._find(index)
            except (self.library.NVMLError, ValueError):
                self.handles[index] = None
        return self.handles[index]

    def _find(self, index: int) -> Any:
        """The handle behind CUDA's number; None where CUDA_VISIBLE_DEVICES hides the card."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        if visible is None:
            return self.library.nvmlDeviceGetHandleByIndex(index)
        names = [name.strip() for name in visible.split(",")]
        if not 0 <= index < len(names) or names[index] in {"", "-1", "NoDevFiles"}:
            return None
        name = names[index]
        if name.isdecimal():
            # The driver counts by bus, CUDA the fastest first unless CUDA_DEVICE_ORDER says
            # otherwise; they differ where cards of different kinds are in one machine.
            return self.library.nvmlDeviceGetHandleByIndex(int(name))
        return self.library.nvmlDeviceGetHandleByUUID(name)


_current: list[_Cards] = []


def _cards() -> _Cards:
    for cards in _current:
        if cards.process == os.getpid():
            return cards
    with _lock:
        if not _current or _current[0].process != os.getpid():
            _current[:] = [_Cards()]  # the first time, or in a process that was forked off
        return _current[0]


def _resident_by_psutil() -> int:
    import psutil

    return psutil.Process().memory_info().rss


def _peak_by_system() -> int:
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return int(getattr(psutil.Process().memory_info(), "peak_wset", 0))
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024  # getrusage(2): bytes, or KiB
