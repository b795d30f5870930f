"""Limits that the operating system puts on this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from snugly.units import Size

WATCHED: Final = {
    "address space": ("RLIMIT_AS", "ulimit -v"),
    "data": ("RLIMIT_DATA", "ulimit -d"),
    "stack": ("RLIMIT_STACK", "ulimit -s"),
    "locked memory": ("RLIMIT_MEMLOCK", "ulimit -l"),
}


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: its name, the shell command that shows it, its value (None: unlimited)."""

    name: str
    command: str
    size: Size | None


def read_limits() -> tuple[Limit, ...]:
    """The soft limits that hold now; empty where the system has none (Windows)."""
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows only, where nothing else here is tested
        return ()
    limits: list[Limit] = []
    for name, (constant, command) in WATCHED.items():
        soft, _ = resource.getrlimit(getattr(resource, constant))
        unlimited = soft == resource.RLIM_INFINITY
        limits.append(Limit(name, command, None if unlimited else Size(soft)))
    return tuple(limits)
