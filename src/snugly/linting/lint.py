"""lint: what source code would leak, or could never fit, found without running it."""

from __future__ import annotations

import gc
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from snugly.codes import REGISTRY
from snugly.errors import InputError, SnuglyError, UnreadableProgramError
from snugly.findings import Finding
from snugly.linting.loops import forget_loops
from snugly.linting.program import Program
from snugly.linting.selection import select_rules
from snugly.linting.sources import STANDARD_INPUT, find_files, package_of, parse_source, read_source
from snugly.linting.suppressions import find_suppressions
from snugly.linting.unit_tests import in_unit_test, is_test_file

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator, Sequence

    from snugly.linting.rule import Alarm, Rule
    from snugly.linting.sources import Source

_WORDS = ("tensorflow", "keras", "tf", "numpy", "np")
"""A file without any of these has nothing that a rule could find; it is parsed all the same."""

_LINE = re.compile(r"\bline (\d+)\b")


@dataclass(slots=True)
class Outcome:
    """What linting found, what it could not read, and what it looked at."""

    findings: list[Finding] = field(default_factory=list)
    problems: list[SnuglyError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    alarms: dict[str, list[tuple[Rule, Alarm]]] = field(default_factory=dict)
    files: int = 0


def lint(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    memory: int | None = None,
) -> list[Finding]:
    """What is found in files and folders: `.code .path .line .message .fix`.

    Args:
        paths: Python files, notebooks, folders.
        select: Codes, beginnings of codes or names of rules; all if not given.
        ignore: Likewise, what to leave out.
        memory: What the machine has; sizes beyond it are told.

    Raises:
        SnuglyError: a file is missing, cannot be read or cannot be parsed.
    """
    outcome = lint_files(_as_list(paths), select=select, ignore=ignore, memory=memory)
    if outcome.problems:
        raise outcome.problems[0]
    return outcome.findings


def lint_files(  # noqa: PLR0913 - one argument an option of the command
    paths: Sequence[str | os.PathLike[str]],
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    memory: int | None = None,
    standard_input: bytes = b"",
    jobs: int = 1,
) -> Outcome:
    """The same, going on where a file cannot be read, and telling of it.

    With more than one job, files are looked at in several processes. What was found is the same
    and in the same order; alarms, which changes are made from, are not brought along.
    """
    rules = select_rules(select, ignore)
    files = list(find_files(paths))
    if STANDARD_INPUT not in files:
        from snugly.linting.jobs import in_processes

        shared = in_processes(files, [rule.code for rule in rules], memory, jobs)
        if shared is not None:
            return shared
    outcome = Outcome()
    with without_collection():
        for path in files:
            lint_file(path, rules, outcome, memory, standard_input)
    return outcome


def lint_file(
    path: str,
    rules: Sequence[Rule],
    outcome: Outcome,
    memory: int | None = None,
    standard_input: bytes = b"",
) -> None:
    """Look at one file, and add to the outcome what is found or what keeps it from being read."""
    outcome.files += 1
    try:
        if path == STANDARD_INPUT:
            source = parse_source(standard_input, "<stdin>")
        else:
            source = read_source(path)
        _lint_source(source, rules, outcome, memory)
    except SnuglyError as problem:
        outcome.problems.append(problem)
    except RecursionError:
        outcome.problems.append(
            InputError(
                f"{path} is nested too deeply to be looked at",
                hint="leave out what is generated",
            )
        )
    finally:
        forget_loops()


@contextmanager
def without_collection() -> Iterator[None]:
    """Leave out Python's search for circles: trees have none, and are millions of objects."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def lint_text(text: str, path: str = "<text>", **chosen: Iterable[str]) -> list[Finding]:
    """What is found in a text; for tests, editors and notebooks."""
    outcome = Outcome()
    source = parse_source(text.encode(), path)
    try:
        _lint_source(source, select_rules(**chosen), outcome, None)  # type: ignore[arg-type]
    finally:
        forget_loops()
    return outcome.findings


def _lint_source(
    source: Source, rules: Sequence[Rule], outcome: Outcome, memory: int | None
) -> None:
    for broken in source.broken:
        outcome.problems.append(
            UnreadableProgramError(
                broken, hint="Python cannot parse this cell either; the others were looked at"
            )
        )
    if not any(word in source.text for word in _WORDS):
        return
    program = Program(source.tree)
    program.memory_limit = memory
    program.package = package_of(source.path)
    suppressions = find_suppressions(source.text)
    findings: list[Finding] = []
    told: set[tuple[str, int]] = set()
    for rule, alarm in _alarms(program, rules):
        line, last = _lines(alarm.node)
        if (rule.code, line) in told:
            continue
        told.add((rule.code, line))
        silenced = [one for one in suppressions if one.covers(rule.code, rule.name, line, last)]
        if silenced:
            for one in silenced:
                one.used = True
            continue
        findings.append(_finding(source, rule, alarm, line))
        if alarm.fix is not None:
            outcome.alarms.setdefault(source.path, []).append((rule, alarm))
    outcome.findings += sorted(findings, key=lambda one: (_position(one), one.code))
    outcome.notes += [
        f"{source.path}:{_place(source, one.line)}: this ignore comment silences nothing"
        for one in suppressions
        if not one.used
    ]


def _alarms(program: Program, rules: Sequence[Rule]) -> Iterator[tuple[Rule, Alarm]]:
    is_test = is_test_file(program)
    for rule in rules:
        if rule.needs_tensorflow and not program.uses_tensorflow:
            continue
        if is_test and not rule.in_tests:
            continue
        for alarm in rule.check(program):
            if rule.in_tests or not in_unit_test(program, alarm.node):
                yield rule, alarm


def _finding(source: Source, rule: Rule, alarm: Alarm, line: int) -> Finding:
    entry = REGISTRY[rule.code]
    finding = Finding(
        code=rule.code,
        title=entry.title,
        cause=entry.meaning,
        remedy=entry.remedy,
        severity=alarm.severity or rule.severity,
        is_memory=rule.is_memory,
        evidence=alarm.evidence,
        path=source.path,
        line=line,
        message=alarm.message,
        fix=None if alarm.fix is None else alarm.fix.what,
    )
    if source.cells is None or line > len(source.cells):
        return finding
    cell, inner = source.cells[line - 1]
    return replace(
        finding,
        line=inner,
        message=f"cell {cell}: {_by_cell(alarm.message, source.cells)}",
        evidence=(f"cell {cell}", *alarm.evidence),
    )


def _by_cell(message: str, cells: Sequence[tuple[int, int]]) -> str:
    """Lines that a message names are those of all cells in one; a reader knows those of a cell."""

    def told(found: re.Match[str]) -> str:
        line = int(found[1])
        if not 1 <= line <= len(cells):
            return found[0]
        cell, inner = cells[line - 1]
        return f"cell {cell}, line {inner}"

    return _LINE.sub(told, message)


def _lines(node: ast.AST) -> tuple[int, int]:
    """The lines of a node; of a statement with a body, those of its head."""
    first = getattr(node, "lineno", 1)
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        return first, max(first, body[0].lineno - 1)
    return first, getattr(node, "end_lineno", None) or first


def _place(source: Source, line: int) -> str:
    if source.cells is None or line > len(source.cells):
        return str(line)
    cell, inner = source.cells[line - 1]
    return f"cell {cell}:{inner}"


def _position(finding: Finding) -> tuple[int, int]:
    cell = finding.evidence[0] if finding.evidence else ""
    number = int(cell.removeprefix("cell ")) if cell.startswith("cell ") else 0
    return number, finding.line or 0


def _as_list(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> list[str | os.PathLike[str]]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)
