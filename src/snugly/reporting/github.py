"""Findings as annotations that GitHub Actions reads from a program's output."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.findings import Finding

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def to_github(findings: Sequence[Finding]) -> str:
    """One line a finding: `::error file=…,line=…,title=…::…`."""
    return "\n".join(_annotation(finding) for finding in findings)


def _annotation(finding: Finding) -> str:
    properties: list[str] = []
    if finding.path is not None:
        properties.append(f"file={_property(finding.path)}")
        if finding.line is not None:
            properties.append(f"line={finding.line}")
    properties.append(f"title={_property(f'{finding.code}: {finding.title}')}")
    said = finding.message or finding.cause
    text = f"{said} What to do: {finding.remedy}" if finding.remedy else said
    return f"::{_COMMANDS[finding.severity]} {','.join(properties)}::{_data(text)}"


def _data(text: str) -> str:
    """Text as a workflow command may carry it (actions/toolkit, core/src/command.ts)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
