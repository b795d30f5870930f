"""What a command and all its descendants hold, read from /proc in microseconds.

`held` is memory of the processes' own: anonymous pages and shared memory. Pages of mapped files
(libraries, `numpy.memmap`) are left out, for the kernel takes them back when it needs them. What
forked processes share is counted once where the sum of all would reach the limit, and in each
where it would not matter. Not seen: files in /dev/shm that no process maps.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from snugly.guarding.policy import FASTEST_GROWTH, LONGEST_PAUSE

PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_NEAR: Final = int(FASTEST_GROWTH * LONGEST_PAUSE)
_KIB: Final = 1024
_ZOMBIE: Final = b"Z"


@dataclass(frozen=True, slots=True)
class Look:
    """One look at all processes: what they hold together, and what each has reserved."""

    held: int
    data: dict[int, int]
    """Bytes of private writable memory by process, as RLIMIT_DATA counts them."""


class ProcessTree:
    """The processes below this one: the command, its children, and orphans that came to us.

    With `adopt_orphans` (limits.py) a process that daemonises becomes a child of ours, so nothing
    escapes by forking twice.
    """

    def __init__(self) -> None:
        self.own = os.getpid()
        self.members: list[int] = []
        self._newest = b""
        self._shared = 0

    def refresh(self, *, always: bool = False) -> None:
        """Find processes that were started since; nearly free where none was on this machine."""
        newest = newest_process()
        if newest == self._newest and newest and not always:
            return
        self._newest = newest
        found: list[int] = []
        waiting = children_of(self.own)
        while waiting:
            process = waiting.pop()
            found.append(process)
            waiting += children_of(process)
        self.members = found

    def look(self, limit: int) -> Look:
        """What the processes hold; read the closer the nearer the limit is."""
        resident = own = 0
        data: dict[int, int] = {}
        for process in self.members:
            pages = read(f"/proc/{process}/statm").split()
            if len(pages) < 6:  # noqa: PLR2004 - it ended meanwhile
                continue
            resident += int(pages[1])
            own += int(pages[1]) - int(pages[2])
            data[process] = int(pages[5]) * PAGE
        if resident * PAGE < limit - _NEAR:
            return Look(own * PAGE + self._shared, data)
        return Look(self._closer(data, limit), data)

    def _closer(self, processes: dict[int, int], limit: int) -> int:
        figures = [_fields(f"/proc/{process}/status") for process in processes]
        shared = sum(one.get(b"RssShmem:", 0) for one in figures)
        self._shared = shared
        held = shared + sum(one.get(b"RssAnon:", 0) for one in figures)
        if len(processes) == 1 or held <= limit:
            return held
        exact = [_fields(f"/proc/{process}/smaps_rollup") for process in processes]
        if not all(b"Pss_Anon:" in one for one in exact):  # Linux before 5.9, or not ours to read
            return held
        return sum(one[b"Pss_Anon:"] + one.get(b"Pss_Shmem:", 0) for one in exact)


def newest_process() -> bytes:
    """The number of the process or thread started last on this machine: /proc/loadavg's end."""
    return read("/proc/loadavg").rpartition(b" ")[2]


def children_of(process: int) -> list[int]:
    """Living children of a process, by all its threads; dead ones are left out."""
    try:
        threads = os.listdir(f"/proc/{process}/task")  # noqa: PTH208 - names alone, and fast
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        found += map(int, read(f"/proc/{process}/task/{thread}/children").split())
    return [child for child in found if is_alive(child)]


def is_alive(process: int) -> bool:
    """Whether a process runs: it exists and is no zombie."""
    state = read(f"/proc/{process}/stat").rpartition(b")")[2].split()[:1]
    return bool(state) and state[0] != _ZOMBIE


def read(path: str) -> bytes:
    """A small file of /proc; empty where it is gone or closed to us."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - 4 µs less
            return file.read(1 << 16)
    except OSError:
        return b""


def name_of(process: int) -> str:
    """What a process calls itself; empty once it ended."""
    return read(f"/proc/{process}/comm").decode(errors="replace").strip()


def catches(process: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal (SigCgt of /proc/PID/status)."""
    for line in read(f"/proc/{process}/status").splitlines():
        if line.startswith(b"SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _fields(path: str) -> dict[bytes, int]:
    """Lines of the form `RssAnon:  1234 kB`, in bytes."""
    found: dict[bytes, int] = {}
    for line in read(path).splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == b"kB":  # noqa: PLR2004 - name, number, unit
            found[words[0]] = int(words[1]) * _KIB
    return found
