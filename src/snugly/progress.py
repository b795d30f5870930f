"""Progress of long work: who draws it is found at run time, so that no room depends on drawing.

Work that ends within a second or two shows nothing. Longer work shows a bar on a terminal; where
standard error is no terminal it stays quiet.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE: Final = 1.5
"""Seconds after which a person wants to see that something happens."""


@contextmanager
def shown(
    title: str, report: Callable[[float], None] | None = None
) -> Iterator[Callable[[float], None]]:
    """A function that takes the finished share of some work, from 0 to 1, and shows it.

    Args:
        title: What is being done, in a few words.
        report: The caller's own function; nothing is drawn then.
    """
    if report is not None:
        yield report
        return
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    bar = _Late(title)
    try:
        yield bar.advance
    finally:
        bar.close()


class _Late:
    """A bar that appears once the work has taken a while."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._begun = time.monotonic()
        self._bar: object | None = None

    def advance(self, share: float) -> None:
        if self._bar is None and share < 1 and time.monotonic() - self._begun > _PATIENCE:
            # By name: rooms below `reporting` do not import it.
            self._bar = import_module("snugly.reporting.progress").Bar(self._title)
        if self._bar is not None:
            self._bar.advance(share)  # type: ignore[attr-defined]

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()  # type: ignore[attr-defined]
