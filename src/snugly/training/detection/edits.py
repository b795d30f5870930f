"""Changing one setting of a configuration's text, and leaving all else as it was written."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from snugly.training.detection.settings import message_at, scalar_at
from snugly.training.detection.text_format import broken, parse_text_format

if TYPE_CHECKING:
    from snugly.training.detection.settings import Path


def set_number(text: str, path: Path, value: int) -> str:
    """The text with the number at a path replaced, or added where its default was in force."""
    tree = parse_text_format(text)
    found = scalar_at(tree, path)
    if found is not None:
        return f"{text[: found.start]}{value}{text[found.end :]}"
    section = message_at(tree, path[:-1])
    if section is None:
        if len(path) != 2:  # noqa: PLR2004 - a section of the file and a setting in it
            raise broken(1, f"there is no {'.'.join(path[:-1])} to set {path[-1]} in")
        return f"{text.rstrip()}\n\n{path[0]} {{\n  {path[1]}: {value}\n}}\n"
    first = section.fields[0].line if section.fields else section.line
    lines = text.split("\n")
    if first == section.line:
        return f"{text[: section.start]} {path[-1]}: {value} {text[section.start :].lstrip(' ')}"
    indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
    # A comment may follow the brace on its line; the new setting stands on a line of its own.
    lines.insert(section.line, f"{indent}{path[-1]}: {value}")
    return "\n".join(lines)


def unified_diff(before: str, after: str, name: str) -> str:
    """The change as `diff -u` would print it."""
    return "\n".join(
        difflib.unified_diff(
            before.splitlines(), after.splitlines(), f"{name}", f"{name} (shrunk)", lineterm="", n=2
        )
    )
