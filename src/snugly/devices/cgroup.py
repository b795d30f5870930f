"""The memory limit of the control group this process lives in, version 1 or 2.

Limits are hierarchical: a process is bound by the smallest limit on the way up to the root, so
all of them are read. Inside a container the own group usually *is* the mounted root, and the
path that /proc names does not exist there; then the root's files are what counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator

# Version 1 writes "no limit" as the largest page-aligned int64 (PAGE_COUNTER_MAX in
# include/linux/page_counter.h); nothing real comes near half of that.
_UNLIMITED_V1: Final = 2**62

_LIMIT_FILE: Final = {1: "memory.limit_in_bytes", 2: "memory.max"}
_USAGE_FILE: Final = {1: "memory.usage_in_bytes", 2: "memory.current"}


@dataclass(frozen=True, slots=True)
class CgroupLimit:
    """The limit that binds this process, and how much of it is used already."""

    version: Literal[1, 2]
    path: Path
    limit: Size
    used: Size

    @property
    def available(self) -> Size:
        """What can still be had. Page cache counts as used, so this errs on the small side."""
        return max(self.limit - self.used, Size(0))


def read_cgroup_limit(root: Path = Path("/")) -> CgroupLimit | None:
    """The smallest memory limit above this process, or None if nothing limits it.

    Args:
        root: Where `proc` and `sys` are mounted; tests give a folder of their own.
    """
    limits = [limit for group in _groups(root) if (limit := _read(*group)) is not None]
    return min(limits, key=lambda limit: limit.limit, default=None)


def _groups(root: Path) -> Iterator[tuple[Literal[1, 2], Path]]:
    """Folders of this process's memory group and of all groups above it."""
    mount = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        hierarchy, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if hierarchy == "0" and not controllers:
            for folder in _upwards(mount, group):
                yield 2, folder
        elif "memory" in controllers.split(","):
            for folder in _upwards(mount / "memory", group):
                yield 1, folder


def _upwards(mount: Path, group: str) -> Iterator[Path]:
    relative = PurePosixPath(group.lstrip("/"))
    # A path with ".." points outside the namespace's own root; only the mount itself is visible.
    if ".." in relative.parts:
        relative = PurePosixPath()
    for step in (relative, *relative.parents):
        yield mount / step


def _read(version: Literal[1, 2], folder: Path) -> CgroupLimit | None:
    limit = _number(folder / _LIMIT_FILE[version])
    if limit is None or limit >= _UNLIMITED_V1:
        return None
    used = _number(folder / _USAGE_FILE[version]) or 0
    return CgroupLimit(version, folder, Size(limit), Size(used))


def _number(path: Path) -> int | None:
    text = next(iter(_lines(path)), "").strip()
    return int(text) if text.isdecimal() else None  # version 2 writes "max" for no limit


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []  # not Linux, not mounted, or not ours to read: nothing is known
