"""Code: one message code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One message code: its title, what it means, and what to do about it."""

    code: str
    title: str
    meaning: str
    remedy: str
