"""Runs programs under a LeakWatch, as `snugly profile --leaks` would, and prints what was found.

    python child.py PROGRAM…

One line of JSON for each program, in order. Programs of one call share a process: each is watched
by a watch of its own, and the first one's waits for TensorFlow to be imported.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from snugly.recording.leaks import LeakWatch, leaks_data

if TYPE_CHECKING:
    from collections.abc import Iterator


def run(program: str) -> dict[str, object]:
    """Run a program as `__main__`, and say what grew."""
    watch = LeakWatch().start()
    sys.argv = [program]
    sys.path.insert(0, str(Path(program).parent))
    error = None
    namespace: dict[str, object] = {}
    try:
        namespace = runpy.run_path(program, run_name="__main__")
    except SystemExit:
        pass
    except Exception as problem:  # noqa: BLE001 - reported with the result
        error = repr(problem)
    finally:
        watch.stop()
        del namespace
        sys.path.pop(0)
    return {**leaks_data(watch.leaks), "problems": watch.problems, "error": error}


def answer_all(programs: Iterator[str], answers: int) -> None:
    """One after the other, without a loop of ours: it would be taken for one of the program's."""
    program = next(programs, None)
    if program is not None:
        os.write(answers, f"{json.dumps(run(program))}\n".encode())
        answer_all(programs, answers)


if __name__ == "__main__":
    answers = os.dup(1)
    os.dup2(2, 1)  # what programs print is not an answer
    answer_all(iter(sys.argv[1:]), answers)
