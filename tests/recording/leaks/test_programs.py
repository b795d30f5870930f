"""Programs that leak, and programs that do not: kind and line of every leak, and no false alarm.

A leaking program marks the line with `# LEAK kind`; it turns at most 30 times before it must have
been found. Programs of one batch share a process, each with a watch of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

HERE = Path(__file__).parent
LEAKING = sorted((HERE / "programs/leaking").glob("*.py"))
HEALTHY = sorted((HERE / "programs/healthy").glob("*.py"))
BATCH = 6
_MARK = re.compile(r"# LEAK ([a-z-]+)")


def batches(programs):
    groups = [programs[start : start + BATCH] for start in range(0, len(programs), BATCH)]
    return [pytest.param(group, id=f"{group[0].stem}…{group[-1].stem}") for group in groups]


def watched(programs):
    """What was found in each program."""
    done = subprocess.run(
        [sys.executable, str(HERE / "child.py"), *map(str, programs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def marked(program):
    """The kind and line of the leak that a program, or a module beside it, is marked with."""
    for path in (program, *sorted(program.parent.glob("*/*.py"))):
        for number, text in enumerate(path.read_text().splitlines(), start=1):
            mark = _MARK.search(text)
            if mark is not None and (path == program or path.parent.name in program.read_text()):
                return mark[1], path.name, number
    raise AssertionError(f"{program.name} has no mark")


def test_there_are_enough_of_them():
    kinds = {marked(program)[0] for program in LEAKING}
    assert len(LEAKING) >= 20
    assert len(kinds) >= 10
    assert len(HEALTHY) >= 30


@pytest.mark.parametrize("programs", batches(LEAKING))
def test_a_leak_is_named_with_its_kind_and_line(programs):
    for program, found in zip(programs, watched(programs), strict=True):
        assert found["error"] is None, program.name
        assert found["problems"] == {}, program.name
        told = {(leak["kind"], Path(leak["path"]).name, leak["line"]) for leak in found["leaks"]}
        assert marked(program) in told, f"{program.name}: {told}"


@pytest.mark.parametrize("programs", batches(HEALTHY))
def test_a_healthy_program_raises_no_alarm(programs):
    for program, found in zip(programs, watched(programs), strict=True):
        assert found["error"] is None, program.name
        assert found["problems"] == {}, program.name
        assert found["leaks"] == [], program.name
