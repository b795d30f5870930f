"""The channel for a command's stderr: a pipe, or a terminal where ours is one.

Programs colour and draw progress bars only on a terminal; behind a pipe they would not.
"""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Channel:
    """Two ends: the command writes, we read."""

    read: int
    written: int


def open_channel(like: int = 2) -> Channel:
    """A channel of the same kind as an open file (our stderr)."""
    if os.isatty(like):
        try:
            return _open_terminal(like)
        except (OSError, ImportError):
            pass  # no terminals left, or none in this sandbox
    return Channel(*os.pipe())


def _open_terminal(like: int) -> Channel:
    import termios
    import tty

    read, written = os.openpty()
    # What is written passes unchanged; the real terminal makes the line ends.
    tty.setraw(written)
    termios.tcsetwinsize(written, termios.tcgetwinsize(like))
    return Channel(read, written)
