"""Finding: what explain, lint, doctor and leaks all say."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]
"""`error`: it will fail or has failed; `warning`: it can; `note`: worth knowing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was found, why it is so, and what to do about it.

    Findings about a place in source code carry `path`, `line` and `message`; findings about what
    happened to a run carry `evidence`, the lines or figures they rest on.
    """

    code: str
    title: str
    cause: str = ""
    remedy: str = ""
    severity: Severity = "warning"
    is_memory: bool = True
    """Whether memory is the cause at all; some messages that look like it are not."""
    confidence: float = 1.0
    """From 0 (a guess) to 1 (certain)."""
    evidence: tuple[str, ...] = ()
    path: str | None = None
    line: int | None = None
    message: str | None = None
    fix: str | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.confidence <= 1.0:
            raise ValueError(f"confidence lies between 0 and 1, not {self.confidence}")

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON; what does not apply is left out."""
        data = asdict(self)
        data["evidence"] = list(self.evidence)
        return {key: value for key, value in data.items() if value is not None}
