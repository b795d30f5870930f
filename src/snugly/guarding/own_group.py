"""A control group of the command's own: the kernel then holds the limit between two looks as well.

Only where that disturbs nobody. In version 2 the own group must be handed over to this user and
hold no process but this one, for a group with processes of its own can have no limited children.
Version 1 allows children beside processes; there it is done only when asked for, because what ends
a job by the list of one group's processes would miss those of a group below it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Choice: TypeAlias = Literal["auto", "always", "never"]
"""Whether a group is wanted: where it disturbs nobody, also in version 1, or not at all."""

_LIMIT: Final = {1: "memory.limit_in_bytes", 2: "memory.max"}
_KILLS: Final = {1: "memory.oom_control", 2: "memory.events"}
_PROCESSES: Final = "cgroup.procs"
_OURS: Final = "snugly-guard"


@dataclass(slots=True)
class OwnGroup:
    """A group with a limit, for one command."""

    version: Literal[1, 2]
    above: Path
    """The group that this process was found in."""
    folder: Path
    limit: int

    @property
    def told(self) -> str:
        """Which limit holds, in words."""
        return f"{_LIMIT[self.version]} of a control group of its own (version {self.version})"

    def entrance(self) -> int | None:
        """A file that moves whoever writes `0` into it; opened here, written by the child."""
        try:
            return os.open(self.folder / _PROCESSES, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return None

    def holds(self, process: int, root: Path = Path("/")) -> bool:
        """Whether a process is in it, also one that has just ended: the move can be refused."""
        return any(
            line.endswith("/" + self.folder.name)
            for line in _lines(root / f"proc/{process}/cgroup")
        )

    def oom_kills(self) -> int | None:
        """How often the kernel's OOM killer struck in it; None where that cannot be read."""
        return counted_kills(self.folder / _KILLS[self.version])

    def close(self) -> None:
        """Take the group away; one in which processes live on stays until they end."""
        if self.version == 2:  # noqa: PLR2004 - the version
            _write(self.above / "cgroup.subtree_control", "-memory")
            _write(self.above / _PROCESSES, str(os.getpid()))
            _remove(self.above / _OURS)
        _remove(self.folder)


def make_group(limit: int, choice: Choice = "auto", root: Path = Path("/")) -> OwnGroup | None:
    """A group that holds a command to so many bytes, or None where none can be had.

    Args:
        limit: What its processes may hold, with their files in memory.
        choice: Whether version 1 is used as well.
        root: Where `proc` and `sys` are mounted; tests give a folder of their own.
    """
    if choice == "never":
        return None
    for version, above in own_folders(root):
        if not os.access(above, os.W_OK) or not os.access(above / _PROCESSES, os.W_OK):
            continue
        if version == 1:
            made = _in_version_1(above, limit) if choice == "always" else None
        else:
            made = _in_version_2(above, limit)
        if made is not None:
            return made
    return None


def own_folders(root: Path = Path("/")) -> Iterator[tuple[Literal[1, 2], Path]]:
    """The memory groups that this process is in, by the files of the system that is mounted."""
    mount = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        hierarchy, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        own = PurePosixPath(group.lstrip("/"))
        # In a container the own group is the mounted root, whatever /proc calls it.
        places = [PurePosixPath()] if ".." in own.parts else [own, PurePosixPath()]
        version: Literal[1, 2] = 2 if hierarchy == "0" and not controllers else 1
        if version == 1 and "memory" not in controllers.split(","):
            continue
        start = mount if version == 2 else mount / "memory"  # noqa: PLR2004 - the version
        for place in places:
            # The files that are mounted may be those of another group than ours.
            if str(os.getpid()) in _lines(start / place / _PROCESSES):
                yield version, start / place
                break


def counted_kills(path: Path) -> int | None:
    """The count in `memory.events` or `memory.oom_control` (since Linux 4.13)."""
    for line in _lines(path):
        name, _, value = line.partition(" ")
        if name == "oom_kill" and value.strip().isdecimal():
            return int(value)
    return None


def _in_version_1(above: Path, limit: int) -> OwnGroup | None:
    return _made(OwnGroup(1, above, above / _name(), limit))


def _in_version_2(above: Path, limit: int) -> OwnGroup | None:
    """The supervisor goes into one child, the command into another."""
    if "memory" not in _words(above / "cgroup.controllers"):
        return None
    if set(_lines(above / _PROCESSES)) != {str(os.getpid())}:
        return None
    ours = above / _OURS
    if not _make(ours):
        return None
    group = OwnGroup(2, above, above / _name(), limit)
    moved = _write(ours / _PROCESSES, str(os.getpid()))
    if moved and _write(above / "cgroup.subtree_control", "+memory"):
        made = _made(group)
        if made is not None:
            return made
    group.close()
    return None


def _made(group: OwnGroup) -> OwnGroup | None:
    if not _make(group.folder):
        return None
    if _write(group.folder / _LIMIT[group.version], str(group.limit)):
        return group
    _remove(group.folder)
    return None


def _name() -> str:
    return f"snugly-run-{os.getpid()}"


def _make(folder: Path) -> bool:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    return True


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return  # not empty yet, or never there


def _write(path: Path, text: str) -> bool:
    try:
        with path.open("w", encoding="ascii") as file:
            file.write(text)
    except OSError:
        return False
    return True


def _words(path: Path) -> list[str]:
    return [word for line in _lines(path) for word in line.split()]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
