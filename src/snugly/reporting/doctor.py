"""The doctor's examination, as data and as a drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.text import Text

from snugly.reporting.devices import draw_host
from snugly.reporting.terminal import make_facts

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snugly.devices.examination import Examination
    from snugly.devices.software import Software
    from snugly.findings import Finding

_STYLE: Final = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}


def doctor_data(examination: Examination) -> dict[str, Any]:
    """What the doctor saw and found."""
    software = examination.software
    return {
        "snugly": _snugly_version(),
        "python": software.python,
        "machine": software.machine,
        "tensorflow": {
            "version": software.tensorflow,
            "installed": [{"name": name, "version": v} for name, v in software.flavours],
            "cuda_build": software.cuda_build,
            "seen": software.tensorflow_seen,
            "keras": software.keras,
            "onednn": software.onednn,
            "cpu_allocator": software.cpu_allocator,
        },
        "variables": dict(software.variables),
        "host": examination.host.to_data(),
        "limits": {
            limit.name: None if limit.size is None else int(limit.size)
            for limit in examination.limits
        },
        "findings": [finding.to_data() for finding in examination.findings],
    }


def draw_doctor(examination: Examination) -> RenderableType:
    """What the doctor saw, then what it found, then what to set."""
    software = examination.software
    limits = [
        (limit.name, f"{limit.size or 'unlimited'}  ({limit.command})")
        for limit in examination.limits
    ]
    variables = list(software.variables) or [("none set", "")]
    return Group(
        Text("software", style="bold"),
        make_facts(_software_facts(software)),
        draw_host(examination.host),
        Text("limits", style="bold"),
        make_facts(limits),
        Text("variables", style="bold"),
        make_facts(variables),
        Text(""),
        *(_draw_finding(finding) for finding in examination.findings),
        Text(_closing(len(examination.findings)), style="dim"),
    )


def _software_facts(software: Software) -> list[tuple[str, str | Text]]:
    installed = ", ".join(f"{name} {version}" for name, version in software.flavours)
    build = {True: "CUDA", False: "CPU only", None: "not known"}[software.cuda_build]
    facts: list[tuple[str, str | Text]] = [
        ("snugly", _snugly_version()),
        ("python", f"{software.python} on {software.machine}"),
        ("tensorflow", installed or "not installed"),
    ]
    if software.flavours:
        facts += [
            ("keras", software.keras or "not installed"),
            ("build", build),
            ("oneDNN", "on" if software.onednn else "off"),
            ("CPU allocator", software.cpu_allocator),
        ]
    return facts


def _draw_finding(finding: Finding) -> RenderableType:
    headline = Text.assemble(
        (f"{finding.severity}[{finding.code}]", _STYLE[finding.severity]), f": {finding.title}"
    )
    facts: list[tuple[str, str | Text]] = [("seen", text) for text in finding.evidence]
    facts += [("why", finding.cause), ("hint", finding.remedy)]
    return Group(headline, make_facts(facts), Text(""))


def _closing(count: int) -> str:
    if not count:
        return "nothing found"
    return f"{count} {'finding' if count == 1 else 'findings'}; each code has a page in the docs"


def _snugly_version() -> str:
    from importlib.metadata import version

    return version("snugly")
