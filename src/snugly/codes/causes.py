"""What a log, an exit code or an exception means: SNG7xx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from snugly.codes.code import Code

CODES: Final[tuple[Code, ...]] = ()
