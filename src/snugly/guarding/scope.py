"""A scope of systemd's user manager: a control group for users who may make none themselves.

`systemd-run --user --scope` registers the process that it is, and then becomes the command: the
supervisor's child keeps its number, its files and its signals.

Only from within the user's own slice: a batch system's job, a service or a container has a group
that holds it to limits and by which it is ended, and a scope of the user's would be outside of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ANSWERS: Final = 3.0
"""Seconds that the user manager is given to make one scope; it takes some 20 ms."""

TOLD: Final = "MemoryMax of a scope of systemd"


def scoped(
    command: Sequence[str],
    limit: int,
    environment: Mapping[str, str],
    root: Path = Path("/"),
) -> list[str] | None:
    """The command inside a scope with a limit, or None where there can be none.

    A command that is not there is left as it is, so that the shell's exit code for it stays.
    """
    runner = shutil.which("systemd-run", path=environment.get("PATH"))
    if runner is None or shutil.which(command[0], path=environment.get("PATH")) is None:
        return None
    if not may_limit(environment, root):
        return None
    words = [runner, "--user", "--scope", "--quiet", "--collect", "-p", f"MemoryMax={limit}", "--"]
    if not _works([*words, "true"], environment):
        return None
    return [*words, *command]


def may_limit(
    environment: Mapping[str, str], root: Path = Path("/"), user: int | None = None
) -> bool:
    """Whether we are in the user's slice, and its manager was handed the memory controller."""
    number = os.getuid() if user is None else user
    if not _in_slice_of(number, root):
        return False
    runtime = environment.get("XDG_RUNTIME_DIR") or f"/run/user/{number}"
    if not (root / runtime.lstrip("/") / "systemd/private").exists():
        return False
    slices = root / "sys/fs/cgroup/user.slice" / f"user-{number}.slice"
    handed = slices / f"user@{number}.service/cgroup.controllers"
    try:
        return "memory" in handed.read_text(encoding="ascii").split()
    except OSError:
        return False


def _in_slice_of(user: int, root: Path) -> bool:
    """Whether this process runs in the user's slice: in a session of theirs, or as their unit."""
    try:
        text = (root / "proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:
        return False
    return any(line.startswith(f"0::/user.slice/user-{user}.slice/") for line in text.splitlines())


def _works(words: list[str], environment: Mapping[str, str]) -> bool:
    """Whether one is made: the files promise it, the manager may still refuse."""
    try:
        done = subprocess.run(  # noqa: S603 - systemd-run and true
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWERS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
