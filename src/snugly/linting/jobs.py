"""Jobs: many files are looked at in several processes, with the same outcome as in one."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TYPE_CHECKING, Final

from snugly.linting.lint import Outcome, lint_file, without_collection
from snugly.linting.selection import select_rules

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.context import BaseContext

FEWEST_FILES: Final = 40
"""With fewer, starting processes takes longer than they save."""

_AT_ONCE: Final = 8
"""Files that a process takes at a time: few enough that none is left with all the long ones."""


def available_cores() -> int:
    """How many processes can run at once here."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_processes(
    files: Sequence[str], codes: Sequence[str], memory: int | None, jobs: int
) -> Outcome | None:
    """The outcome of all files, or None where it is better, or only possible, in one process."""
    if jobs < 2 or len(files) < FEWEST_FILES:  # noqa: PLR2004 - one process is no sharing
        return None
    work = partial(_look_at, codes=tuple(codes), memory=memory)
    together = Outcome()
    try:
        with ProcessPoolExecutor(min(jobs, len(files)), mp_context=_context()) as pool:
            for one in pool.map(work, files, chunksize=_AT_ONCE):
                together.files += one.files
                together.findings += one.findings
                together.problems += one.problems
                together.notes += one.notes
    except (BrokenProcessPool, OSError):
        return None  # no processes here, or one was killed: then all in this one
    return together


def _look_at(path: str, codes: Sequence[str], memory: int | None) -> Outcome:
    outcome = Outcome()
    with without_collection():
        lint_file(path, select_rules(codes), outcome, memory)
    outcome.alarms.clear()  # their nodes would take longer to send than to find
    return outcome


def _context() -> BaseContext:
    # A fork is quick, and safe only where no other thread can hold a lock.
    forks = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    return multiprocessing.get_context("fork" if forks else "spawn")
