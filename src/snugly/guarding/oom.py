"""How often the kernel's OOM killer struck in our control group, version 1 or 2.

Processes beside ours in the same group are counted as well, so a count that rose while the command
ran is strong evidence, not proof.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from snugly.guarding.own_group import counted_kills, own_folders

_FILES: Final = {1: "memory.oom_control", 2: "memory.events"}


def oom_kills(root: Path = Path("/")) -> int | None:
    """The counter of our own group; None without control groups or where it may not be read.

    Args:
        root: Where `proc` and `sys` are mounted; tests give a folder of their own.
    """
    for version, folder in own_folders(root):
        kills = counted_kills(folder / _FILES[version])
        if kills is not None:
            return kills
    return None
