"""Suppressions: `# snugly: ignore[SNG412] reason`, on a line or alone on the one above.

Without a code all findings of the line are ignored. The comment may stand on any line of a
statement that is written over several.
"""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass, field
from typing import Final

_COMMENT: Final = re.compile(r"#\s*snugly:\s*ignore(?:\s*\[([^\]]*)\])?", re.IGNORECASE)


@dataclass(slots=True)
class Suppression:
    """One comment. Without codes it holds for all."""

    line: int
    codes: frozenset[str] | None
    alone: bool
    used: bool = field(default=False)

    def covers(self, code: str, name: str, first: int, last: int) -> bool:
        """Whether it silences a rule between these lines."""
        if self.codes is not None and not {code, name.upper()} & self.codes:
            return False
        return first <= self.line <= last or (self.alone and self.line + 1 == first)


def find_suppressions(text: str) -> list[Suppression]:
    """All such comments of a source; text inside of strings is none."""
    if not _COMMENT.search(text):
        return []
    found: list[Suppression] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type != tokenize.COMMENT:
                continue
            written = _COMMENT.search(token.string)
            if written is not None:
                alone = not token.line[: token.start[1]].strip()
                found.append(Suppression(token.start[0], _codes(written[1]), alone))
    except (tokenize.TokenError, SyntaxError):
        return found  # what was found before stays; the parser has accepted the rest
    return found


def _codes(text: str | None) -> frozenset[str] | None:
    if text is None or not text.strip():
        return None
    return frozenset(one.strip().upper() for one in text.split(",") if one.strip())
