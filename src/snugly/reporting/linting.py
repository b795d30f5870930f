"""What lint found, as drawings: a place, a code and a sentence a line."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from snugly.codes import REGISTRY
from snugly.reporting.findings import STYLES
from snugly.reporting.terminal import make_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from snugly.findings import Finding
    from snugly.linting.rule import Rule


def draw_lint(findings: Sequence[Finding], files: int) -> RenderableType:
    """Every finding with its place, then for each code once what to do about it."""
    looked = f"{files} {'file' if files == 1 else 'files'} looked at"
    if not findings:
        return Text(f"nothing found; {looked}")
    lines = [_line(finding) for finding in findings]
    hints = [Text(f"hint: {hint}") for hint in _hints(findings)]
    return Group(*lines, Text(f"\n{_counted(findings)}; {looked}"), *hints)


def lint_lines(findings: Sequence[Finding], files: int) -> list[str]:
    """The same as plain lines of any length, for pipes and files."""
    looked = f"{files} {'file' if files == 1 else 'files'} looked at"
    if not findings:
        return [f"nothing found; {looked}"]
    lines = [_line(finding).plain for finding in findings]
    hints = [f"hint: {hint}" for hint in _hints(findings)]
    return [*lines, "", f"{_counted(findings)}; {looked}", *hints]


def _line(finding: Finding) -> Text:
    return Text.assemble(
        (place_of(finding), "bold"),
        ": ",
        (f"{finding.severity}[{finding.code}]", STYLES[finding.severity]),
        f" {_message(finding)}",
        (f" (--fix: {finding.fix})" if finding.fix else "", "dim"),
    )


def _hints(findings: Sequence[Finding]) -> list[str]:
    codes = dict.fromkeys(finding.code for finding in findings)
    return [f"{code}: {REGISTRY[code].remedy}" for code in codes]


def place_of(finding: Finding) -> str:
    """`train.py:48`; in a notebook `train.ipynb:cell 3:2`."""
    cell = next((one for one in finding.evidence if one.startswith("cell ")), None)
    inner = "" if cell is None else f"{cell}:"
    return f"{finding.path}:{inner}{finding.line}"


def rules_data(rules: Sequence[Rule]) -> dict[str, Any]:
    """The rules, as `snugly lint --rules --output-format json` prints them."""
    return {
        "rules": [
            {
                "code": rule.code,
                "name": rule.name,
                "severity": rule.severity,
                "title": REGISTRY[rule.code].title,
                "bad": list(rule.bad),
                "good": list(rule.good),
            }
            for rule in rules
        ]
    }


def draw_rules(rules: Sequence[Rule]) -> RenderableType:
    """One line a rule."""
    table = make_table("code", "name", "severity", "finds")
    for rule in rules:
        table.add_row(rule.code, rule.name, rule.severity, REGISTRY[rule.code].title)
    return table


def _message(finding: Finding) -> str:
    said = finding.message or finding.title
    cell = next((one for one in finding.evidence if one.startswith("cell ")), None)
    return said if cell is None else said.removeprefix(f"{cell}: ")


def _counted(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    words = [
        f"{number} {severity}{'' if number == 1 else 's'}"
        for severity in ("error", "warning", "note")
        if (number := counts[severity])
    ]
    return ", ".join(words)
