"""How often the kernel's OOM killer struck in our control group, version 1 or 2.

Processes beside ours in the same group are counted as well, so a count that rose while the command
ran is strong evidence, not proof.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

# Version 1 has the counter in memory.oom_control since Linux 4.13.
_FILES = {1: "memory.oom_control", 2: "memory.events"}


def oom_kills(root: Path = Path("/")) -> int | None:
    """The counter of our own group; None without control groups or where it may not be read.

    Args:
        root: Where `proc` and `sys` are mounted; tests give a folder of their own.
    """
    for version, folder in _folders(root):
        # The files that are mounted may be those of another group than ours.
        if str(os.getpid()) not in _lines(folder / "cgroup.procs"):
            continue
        for line in _lines(folder / _FILES[version]):
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.strip().isdecimal():
                return int(value)
    return None


def _folders(root: Path) -> list[tuple[int, Path]]:
    mount = root / "sys/fs/cgroup"
    found: list[tuple[int, Path]] = []
    for line in _lines(root / "proc/self/cgroup"):
        hierarchy, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        own = PurePosixPath(group.lstrip("/"))
        # In a container the own group is the mounted root, whatever /proc calls it.
        places = [PurePosixPath()] if ".." in own.parts else [own, PurePosixPath()]
        if hierarchy == "0" and not controllers:
            found += [(2, mount / place) for place in places]
        elif "memory" in controllers.split(","):
            found += [(1, mount / "memory" / place) for place in places]
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
