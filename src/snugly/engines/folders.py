"""Whether workers see a folder as this process does: what they leave for one another lies there."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from snugly.errors import InputError

if TYPE_CHECKING:
    from snugly.engines.engine import Engine


def require_folder(engine: Engine, folder: Path, hint: str) -> None:
    """See that every worker can read and write a folder, and that it is the same one.

    Raises:
        InputError: The message names the first worker that cannot.
    """
    token = folder / f".snugly-{uuid.uuid4().hex}"
    try:
        token.write_text(token.name)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error.strerror}", code="SNG583", hint=hint
        ) from error
    try:
        for name, fault in engine.everywhere(fault_of, str(token)).items():
            if fault:
                raise InputError(f"{name} cannot use {folder}: {fault}", code="SNG583", hint=hint)
    finally:
        token.unlink(missing_ok=True)


def fault_of(token: str) -> str:
    """In a worker: what is wrong with the folder of a token, if anything."""
    path = Path(token)
    try:
        if path.read_text() != path.name:
            return "it is another folder of the same name there"
        with tempfile.NamedTemporaryFile(dir=path.parent):
            return ""
    except OSError as error:
        return error.strerror or str(error)
