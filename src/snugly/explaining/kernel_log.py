"""The kernel's log about one process, where this user may read it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from snugly.errors import InputError

_TIMEOUT: Final = 20
_COMMANDS: Final = (
    ("dmesg", "--kernel"),
    ("journalctl", "--dmesg", "--no-pager", "--quiet", "--lines=20000"),
)
LARGEST_LOG: Final = 16 << 20


def read_pid_file(path: Path) -> int:
    """The number of the process that a pid file names."""
    try:
        text = path.read_bytes()[:64].decode("ascii", "replace").strip()
    except OSError as problem:
        raise InputError(
            f"cannot read {path}: {problem.strerror or problem}",
            hint="give the file into which the process wrote its number",
        ) from problem
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"{path} has no process number", hint="it should be one number")
    return int(text)


def is_running(pid: int) -> bool:
    """Whether a process of this number exists and is not a dead one that nobody waited for."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[:1] not in (["Z"], ["X"])


def kernel_lines_about(pid: int) -> tuple[str, ...] | None:
    """What the kernel's log says about a process; None where this user may not read it."""
    for name, *options in _COMMANDS:
        program = shutil.which(name)
        if program is None:
            continue
        try:
            run = subprocess.run(  # noqa: S603 - the system's own tools, fixed arguments
                [program, *options], capture_output=True, timeout=_TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if run.returncode == 0 and run.stdout:
            return lines_about(pid, run.stdout[-LARGEST_LOG:].decode("utf-8", "replace"))
    return None


def lines_about(pid: int, log: str) -> tuple[str, ...]:
    """Lines of a kernel's log that name the process."""
    named = re.compile(rf"(?:[Pp]rocess |pid[=:] ?){pid}\b")
    return tuple(line for line in log.splitlines() if named.search(line))
