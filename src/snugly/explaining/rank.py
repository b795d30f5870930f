"""Which of several causes comes first.

The specific goes before the general, a cause before what follows from it, and what ended a program
before what it survived.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snugly.explaining.catalogue import Role

ROLE_SCORE: Final[dict[Role, int]] = {"cause": 300, "consequence": 200, "warning": 100, "notice": 0}
"""Roles are steps; the weight of an entry (below 100) decides inside of one."""

TERMINAL_BONUS: Final = 40
"""For what stands in the last traceback, or after it: that ended the program. Enough to go before
a cause that is more specific and was survived, not enough to make a cause of a warning."""


LIKELY: Final = 0.5
"""A warning that is less than this does not explain what came after it."""


@dataclass(slots=True)
class Candidate:
    """A cause that may be shown, before it is decided in which order."""

    code: str
    role: Role
    weight: int
    confidence: float
    is_memory: bool
    evidence: list[str]
    line: int | None = None
    is_terminal: bool = False
    explains: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    """Sentences that are added to the cause."""

    @property
    def score(self) -> int:
        """The score by itself, without regard to other candidates."""
        bonus = TERMINAL_BONUS if self.is_terminal and self.role != "notice" else 0
        return ROLE_SCORE[self.role] + self.weight + bonus


def merge(candidates: Iterable[Candidate]) -> list[Candidate]:
    """One candidate a code: the best of each, with the evidence of all."""
    merged: dict[str, Candidate] = {}
    for candidate in candidates:
        known = merged.get(candidate.code)
        if known is None:
            merged[candidate.code] = candidate
            continue
        better, other = (known, candidate) if known.score >= candidate.score else (candidate, known)
        better.evidence += [text for text in other.evidence if text not in better.evidence]
        better.notes += [text for text in other.notes if text not in better.notes]
        better.explains |= other.explains
        better.is_terminal = better.is_terminal or other.is_terminal
        # Two ways of saying the same thing support each other a little.
        better.confidence = min(max(better.confidence, other.confidence) + 0.02, 0.99)
        merged[candidate.code] = better
    return list(merged.values())


def rank(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first. What explains another candidate goes before it, whatever their scores."""
    remaining = merge(candidates)
    scores = {candidate.code: candidate.score for candidate in remaining}
    # Along a chain of explanations the cause is raised above all that follows from it; as many
    # rounds as there are candidates are enough, and a circle cannot keep us here.
    for _ in remaining:
        changed = False
        for candidate in remaining:
            if candidate.role in {"warning", "notice"} and candidate.confidence < LIKELY:
                continue
            followers = [scores[code] for code in candidate.explains if code in scores]
            needed = max(followers, default=-1) + 1
            if scores[candidate.code] < needed:
                scores[candidate.code] = needed
                changed = True
        if not changed:
            break
    return sorted(
        remaining, key=lambda one: (scores[one.code], one.confidence, one.line or 0), reverse=True
    )
