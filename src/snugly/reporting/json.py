"""JSON output: the one way in which every command prints it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION: Final = 1
"""Raised when a key is removed or changes its meaning; new keys do not raise it."""


def to_json(data: Mapping[str, Any]) -> str:
    """Data as JSON text with the schema's version first. Sizes are plain bytes."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **data}, indent=2, ensure_ascii=False)


def print_json(data: Mapping[str, Any]) -> None:
    """Print data as JSON on stdout, where nothing else is printed in that case."""
    sys.stdout.write(to_json(data) + "\n")


def print_json_line(data: Mapping[str, Any]) -> None:
    """The same on one line, the last on stdout, where a script has printed before."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **data}, ensure_ascii=False)
    sys.stdout.write(text + "\n")
