"""Findings as SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from snugly.codes import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.findings import Finding

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_data(findings: Sequence[Finding]) -> dict[str, Any]:
    """One run with a rule for each code and a result for each finding."""
    codes = list(dict.fromkeys(finding.code for finding in findings))
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "Snugly", "rules": [_rule(code) for code in codes]}},
                "results": [_result(finding, codes) for finding in findings],
            }
        ],
    }


def to_sarif(findings: Sequence[Finding]) -> str:
    """The same as JSON text."""
    return json.dumps(sarif_data(findings), indent=2, ensure_ascii=False)


def _rule(code: str) -> dict[str, Any]:
    entry = REGISTRY[code]
    return {
        "id": code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.meaning},
        "help": {"text": entry.remedy},
    }


def _result(finding: Finding, codes: list[str]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": finding.severity,
        "message": {"text": finding.message or f"{finding.title}. {finding.cause}"},
        "properties": {
            "is_memory": finding.is_memory,
            "confidence": finding.confidence,
            "evidence": list(finding.evidence),
        },
    }
    if finding.path is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": finding.path.replace("\\", "/")}}
        if finding.line is not None:
            place["region"] = {"startLine": finding.line}
        result["locations"] = [{"physicalLocation": place}]
    return result
