"""Findings, as data and as drawings: what happened, how sure, why, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.text import Text

from snugly.reporting.terminal import make_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from snugly.codes import Code
    from snugly.findings import Finding

STYLES: Final = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}

_SURE: Final = 0.9
_LIKELY: Final = 0.7
_POSSIBLE: Final = 0.45

UNKNOWN: Final = (
    "unknown: nothing here is a message that Snugly knows. That does not mean that memory was not"
    " the cause: a killed process leaves no words. Its exit code says more:"
    " `snugly explain LOG --exit-code N`."
)


def findings_data(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings, as `--output-format json` prints them."""
    return {"findings": [finding.to_data() for finding in findings]}


def draw_findings(findings: Sequence[Finding]) -> RenderableType:
    """The first finding in full, then what else was found in a line each."""
    if not findings:
        return Text(UNKNOWN)
    first, *others = findings
    parts: list[RenderableType] = [draw_finding(first)]
    if others:
        parts.append(Text("\nalso seen", style="bold"))
        parts += [_one_line(finding) for finding in others]
        parts.append(Text(f"`snugly explain {others[0].code}` tells more of one", style="dim"))
    return Group(*parts)


def draw_finding(finding: Finding) -> RenderableType:
    """One finding: its title, whether it is memory, how sure, why, what to do."""
    headline = Text.assemble(
        (f"{finding.severity}[{finding.code}]", STYLES[finding.severity]), f": {finding.title}"
    )
    facts: list[tuple[str, str | Text]] = [
        ("memory", "yes" if finding.is_memory else "no, memory is not the cause"),
        ("how sure", f"{in_words(finding.confidence)} ({finding.confidence:.0%}, assumed)"),
    ]
    facts += [("seen" if not place else "", text) for place, text in enumerate(finding.evidence)]
    facts.append(("why", finding.cause))
    return Group(headline, make_facts(facts), Text(f"\nhint: {finding.remedy}"))


def in_words(confidence: float) -> str:
    """How sure a finding is, as people say it."""
    if confidence >= _SURE:
        return "nearly certain"
    if confidence >= _LIKELY:
        return "likely"
    return "possible" if confidence >= _POSSIBLE else "a guess"


def code_data(entry: Code, samples: Sequence[str]) -> dict[str, Any]:
    """One message code and what it looks like in a log."""
    return {
        "code": entry.code,
        "title": entry.title,
        "meaning": entry.meaning,
        "remedy": entry.remedy,
        "samples": list(samples),
    }


def draw_code(entry: Code, samples: Sequence[str]) -> RenderableType:
    """The page of a code, as the documentation has it."""
    parts: list[RenderableType] = [
        Text.assemble((entry.code, "bold"), f": {entry.title}\n"),
        Text(f"{entry.meaning}\n"),
        Text.assemble(("what to do  ", "dim"), entry.remedy),
    ]
    if samples:
        parts.append(Text("\nit looks like", style="dim"))
        parts += [Text(f"  {line}") for sample in samples for line in sample.splitlines()]
    return Group(*parts)


def _one_line(finding: Finding) -> Text:
    kind = "memory" if finding.is_memory else "not memory"
    return Text.assemble(
        "  ",
        (finding.code, STYLES[finding.severity]),
        f" {finding.title} ({kind}, {in_words(finding.confidence)})",
    )
