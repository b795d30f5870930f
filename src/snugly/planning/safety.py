"""How much a change does to a result: the words that every change carries."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from snugly.errors import InputError, suggest

Safety: TypeAlias = Literal["same-result", "changes-rounding", "changes-training"]
SAFETIES: Final[tuple[Safety, ...]] = get_args(Safety)
"""From the harmless to the harmful; what is allowed allows everything before it."""


def harm_of(safety: str) -> int:
    """Where a safety stands in `SAFETIES`; an error where it is none."""
    if safety not in SAFETIES:
        raise InputError(
            f"allow cannot be {safety!r:.40}",
            hint=suggest(str(safety), SAFETIES) or f"give one of {', '.join(SAFETIES)}",
        )
    return SAFETIES.index(safety)
