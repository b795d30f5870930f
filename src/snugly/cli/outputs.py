"""Files that commands write: refused before the work where they cannot be, written after it."""

from __future__ import annotations

import os
from pathlib import Path

from snugly.errors import InputError


def refuse_place(name: str | None, example: str, program: str | None = None) -> None:
    """Refuse a place that cannot be written to, and the program itself, before the work.

    Args:
        name: what the user gave; None where nothing is written.
        example: what the hint shows.
        program: what is read, and must stay as it is.
    """
    if name is None:
        return
    path = Path(name)
    try:
        is_place = "\0" not in name and not path.is_dir() and path.parent.is_dir()
        is_free = is_place and os.access(path if path.exists() else path.parent, os.W_OK)
    except OSError:  # a name that is too long
        is_free = False
    if not is_free:
        raise _unwritable(name, example)
    if program is not None and _is_same(path, program):
        raise InputError(
            f"{name[:200]!r} is the program itself, which is left as it is",
            hint=f"give another file: -o {example}",
        )


def write_output(name: str, content: bytes, example: str) -> None:
    """Write a file; what lay there is replaced."""
    try:
        Path(name).write_bytes(content)
    except OSError as error:
        raise _unwritable(name, example, f": {error.strerror}") from None


def _is_same(path: Path, program: str) -> bool:
    try:
        return path.exists() and path.samefile(program)
    except (OSError, ValueError):  # no such program, which is said later
        return False


def _unwritable(name: str, example: str, reason: str = "") -> InputError:
    return InputError(
        f"cannot write {name[:200]!r}{reason}",
        hint=f"give a file in a folder that exists and may be written to: -o {example}",
    )
