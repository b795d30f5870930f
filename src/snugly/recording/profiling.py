"""Run a script in a process of its own, recorded, and finish its record whatever becomes of it."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError, SnuglyError, suggest
from snugly.recording.allocator import USE_BFC
from snugly.recording.file import cannot_write, read_record, write_record
from snugly.recording.windows import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from snugly.recording.record import Record

ENVIRONMENT: dict[str, str] = {USE_BFC: "1"}
"""What must be set before TensorFlow is imported, so that every allocation is counted and traced.

What the user has set already stays as it is.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run: a script and its arguments, or a module as `python -m` would."""

    script: str
    arguments: Sequence[str] = ()
    is_module: bool = False

    @property
    def text(self) -> str:
        """As people would write it."""
        script = f"-m {self.script}" if self.is_module else Path(self.script).name
        return " ".join([script, *self.arguments])

    def check(self) -> None:
        """Raise an error where Python could not even begin."""
        if self.is_module:
            _check_module(self.script)
        else:
            _check_script(Path(self.script))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a recorded run ended."""

    exit_code: int
    record: Record | None  # None where nothing could be recorded


def profile(
    command: Command, output: Path, plan: Plan | None = None, *, leaks: bool = False
) -> Outcome:
    """Run a command and leave its record in a file.

    While it runs, the file grows and can be read at any time; a run that is killed leaves what was
    recorded until then.
    """
    command.check()
    _check_output(output)
    plan = plan or Plan()
    options = {
        "output": str(output.resolve()),
        "mode": plan.mode,
        "largest_file": plan.largest_file,
        "program": command.text,
        "module": command.is_module,
        "leaks": leaks,
    }
    words = ["-m", "snugly.recording.running", json.dumps(options), command.script]
    code = run_python([*words, *command.arguments])
    return Outcome(code, finish(output, code))


def run_python(
    words: Sequence[str],
    *,
    errors: Path | None = None,
    quiet: bool = False,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run Python with the same flags as this one; the exit code as a shell would give it.

    `errors` takes what it writes to stderr, `quiet` drops what it writes to stdout, `environment`
    is set whatever the user has set.
    """
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
    output = subprocess.DEVNULL if quiet else None
    with _signals_left_to_child(), ExitStack() as files:
        stderr = None if errors is None else files.enter_context(errors.open("wb"))
        child = subprocess.Popen(  # noqa: S603 - this Python, to run what the user asked for
            [sys.executable, *flags, *words],
            env=ENVIRONMENT | os.environ | dict(environment or {}),
            stdout=output,
            stderr=stderr,
        )
        with _terminated_together(child):
            code = child.wait()
    return 128 - code if code < 0 else code


def finish(output: Path, exit_code: int) -> Record | None:
    """Turn the raw file into a finished record; one that cannot be read is left as it is."""
    try:
        record = read_record(output)
    except SnuglyError:
        return None
    notes, facts = record.notes, {**record.facts, "exit_code": exit_code}
    if exit_code > 128 and not record.facts.get("complete"):  # noqa: PLR2004 - 128 + the signal
        notes = (*notes, f"the process was ended by {_signal_name(exit_code - 128)}")
    record = replace(record, notes=notes, facts=facts)
    write_record(record, output)
    return record


def _check_output(output: Path) -> None:
    try:
        with output.open("ab"):
            pass
    except OSError as problem:
        raise cannot_write(output, problem) from problem


def _check_script(script: Path) -> None:
    if not script.is_file():
        folder = script.parent if script.parent.is_dir() else Path()
        near = suggest(script.name, [entry.name for entry in folder.glob("*.py")][:1000])
        raise InputError(
            f"there is no script {script}", code="SNG303", hint=near or "check the path"
        )
    try:
        ast.parse(script.read_bytes(), str(script))
    except (SyntaxError, ValueError) as problem:
        line = (
            f" (line {problem.lineno}: {problem.msg})" if isinstance(problem, SyntaxError) else ""
        )
        raise InputError(f"{script} is not Python{line}", code="SNG303") from problem
    except OSError as problem:
        raise InputError(f"cannot read {script}: {problem.strerror}", code="SNG303") from problem


def _check_module(name: str) -> None:
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = find_spec(name)
    except (ImportError, ValueError):
        found = None
    finally:
        sys.path.pop(0)
    if found is None:
        raise InputError(f"there is no module {name!r}", code="SNG303")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def _signals_left_to_child() -> Iterator[None]:
    """Ctrl-C reaches the child as well, from the terminal; it decides what to make of it."""
    previous = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not in the main thread, where nobody gets signals anyway
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def _terminated_together(child: subprocess.Popen[Any]) -> Iterator[None]:
    """Who terminates us means the script."""
    try:
        previous = signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
