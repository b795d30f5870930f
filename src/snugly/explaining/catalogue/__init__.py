"""The catalogue: how each cause is recognised. One TOML file a family, checked while it is read.

An entry names its code (title, cause and remedy stand in `snugly.codes`), what a line must have
to count for it, where that was read, which versions say so, and a sample, which is its test.

Roles say how an entry stands to others that match the same log:

    cause        what went wrong
    consequence  follows from a cause, or names none; steps back where a cause is found
    warning      can lead to a failure, and is not one
    notice       printed by healthy programs too; speaks only where nothing else does
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, TypeAlias, get_args

from snugly.codes import REGISTRY

Role: TypeAlias = Literal["cause", "consequence", "warning", "notice"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

FAMILIES: Final = (
    "memory",
    "system",
    "limits",
    "cuda",
    "installation",
    "tensors",
    "programs",
    "lite",
    "services",
    "words",
    "frameworks",
    "packages",
    "machines",
    "cards",
    "languages",
    "platforms",
    "ends",
    "sentences",
)

_KNOWN: Final = {
    "code",
    "memory",
    "role",
    "weight",
    "confidence",
    "texts",
    "patterns",
    "exceptions",
    "unless",
    "explains",
    "source",
    "versions",
    "sample",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a line must have: a text (in lower case) and, where that is not enough, a pattern."""

    text: str
    regex: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One way in which a cause shows itself."""

    code: str
    is_memory: bool
    role: Role
    weight: int
    """From 0 to 99: how specific the message is, among entries of the same role."""
    confidence: float
    patterns: tuple[Pattern, ...]
    exceptions: frozenset[str]
    """Names that count only where an exception's name stands, not in a line of source."""
    unless: tuple[str, ...]
    """Texts (in lower case) with which a line does not count after all."""
    explains: frozenset[str]
    """Codes that follow from this one, so that it comes before them."""
    source: str
    versions: str
    samples: tuple[str, ...]
    family: str


@cache
def catalogue() -> tuple[Entry, ...]:
    """All entries, family by family."""
    folder = files("snugly.explaining.catalogue")
    entries: list[Entry] = []
    for family in FAMILIES:
        text = folder.joinpath(f"{family}.toml").read_text(encoding="utf-8")
        entries += parse_entries(text, family)
    return tuple(entries)


def parse_entries(text: str, family: str) -> list[Entry]:
    """Entries of one file; one without a source, a sample or anything to look for is refused."""
    return [_parse_entry(table, family) for table in tomllib.loads(text).get("entry", [])]


def _parse_entry(table: dict[str, Any], family: str) -> Entry:
    code = table.get("code", "")
    where = f"{family}.toml, {code or 'an entry without a code'}"
    if code not in REGISTRY:
        raise ValueError(f"{where}: there is no such code")
    if unknown := table.keys() - _KNOWN:
        raise ValueError(f"{where}: unknown keys {sorted(unknown)}")
    if not table.get("source") or not table.get("sample"):
        raise ValueError(f"{where}: needs a source and a sample")
    if table.get("role") not in ROLES:
        raise ValueError(f"{where}: role must be one of {', '.join(ROLES)}")
    patterns = [Pattern(text.lower()) for text in table.get("texts", [])]
    patterns += [
        Pattern(text.lower(), re.compile(regex)) for text, regex in table.get("patterns", [])
    ]
    exceptions = frozenset(table.get("exceptions", []))
    if not patterns and not exceptions:
        raise ValueError(f"{where}: has nothing to look for")
    sample = table["sample"]
    return Entry(
        code=code,
        is_memory=table["memory"],
        role=table["role"],
        weight=table["weight"],
        confidence=table["confidence"],
        patterns=tuple(patterns),
        exceptions=exceptions,
        unless=tuple(text.lower() for text in table.get("unless", [])),
        explains=frozenset(table.get("explains", [])),
        source=table["source"],
        versions=table.get("versions", "not tied to a version"),
        samples=(sample,) if isinstance(sample, str) else tuple(sample),
        family=family,
    )
