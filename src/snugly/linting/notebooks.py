"""Notebooks: the code cells of an .ipynb as one source, with where each line comes from.

IPython's own syntax (`%time`, `!ls`, `name?`, `%%bash`) is taken out; what is Python stays at its
place, so that lines can be told.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
import warnings
from dataclasses import dataclass
from typing import Any, Final

from snugly.errors import UnreadableProgramError

_PYTHON_CELLS: Final = frozenset(
    {"time", "timeit", "capture", "prun", "snugly_profile", "snugly_guard", "memit", "mprun"}
)
"""Cell magics whose body is Python; the body of any other (`%%bash`) is not looked at."""
_TRANSPARENT: Final = re.compile(r"^(\s*)%(?:time|timeit|prun|memit)\s+(?:-\S+\s+)*")
_MAGIC: Final = re.compile(r"^\s*(%{1,2}[A-Za-z_]|!)")
_ASSIGNED: Final = re.compile(r"^(\s*[\w, .\[\]]+=\s*)[!%].*$")
_HELP: Final = re.compile(r"^\s*\??\??[\w.%*]+\?{1,2}\s*$|^\s*\?{1,2}[\w.]+\s*$")
PARSE_FLAGS: Final = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


@dataclass(frozen=True, slots=True)
class Cells:
    """A notebook's code as one text, and for every line its cell and its line in there."""

    text: str
    places: tuple[tuple[int, int], ...]
    broken: tuple[str, ...]
    """What could not be parsed, a sentence each; those cells are left out."""


def read_notebook(text: str, path: str) -> Cells:
    """Take the code out of a notebook."""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableProgramError(
            f"cannot read the notebook {path}: {error}", hint="save it again from Jupyter"
        ) from error
    cells = document.get("cells") if isinstance(document, dict) else None
    if cells is None and isinstance(document, dict):
        sheets = document.get("worksheets")  # notebooks before version 4
        cells = sheets[0].get("cells") if isinstance(sheets, list) and sheets else None
    if not isinstance(cells, list):
        raise UnreadableProgramError(
            f"{path} is JSON, but not a notebook", hint="give a notebook that Jupyter wrote"
        )
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    broken: list[str] = []
    for number, cell in enumerate(cells, start=1):
        source = _source(cell)
        if source is None:
            continue
        written = without_magics(source)
        problem = _problem(written)
        if problem is not None:
            broken.append(f"{path}, cell {number}, {problem}")
            written = [""] * len(written)
        for place, line in enumerate(written, start=1):
            lines.append(line)
            places.append((number, place))
    return Cells("\n".join(lines) + "\n", tuple(places), tuple(broken))


def without_magics(source: str) -> list[str]:
    """The lines of a cell with IPython's own syntax taken out."""
    lines = textwrap.dedent(source).split("\n")  # IPython does the same
    if _problem(lines) is None:
        return lines
    first = next((place for place, line in enumerate(lines) if line.strip()), 0)
    if lines[first].lstrip().startswith("%%"):
        magic = lines[first].lstrip()[2:].split()
        if not magic or magic[0] not in _PYTHON_CELLS:
            return [""] * len(lines)
        lines[first] = ""
    written: list[str] = []
    goes_on = False
    for line in lines:
        if goes_on:  # a command for the shell over several lines
            written.append("")
            goes_on = line.rstrip().endswith("\\")
            continue
        kept = _without_magic(line)
        goes_on = kept != line and line.rstrip().endswith("\\")
        written.append(kept)
    return written


def _without_magic(line: str) -> str:
    stripped = line.lstrip()
    indent = line[: len(line) - len(stripped)]
    if _TRANSPARENT.match(line):
        return _TRANSPARENT.sub(r"\1", line)
    if _MAGIC.match(line) or _HELP.match(line):
        return f"{indent}pass"
    assigned = _ASSIGNED.match(line)
    if assigned is not None and "==" not in assigned[1]:
        return f"{assigned[1]}None"
    return line


def _source(cell: Any) -> str | None:
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return None
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(str(part) for part in source)
    return source if isinstance(source, str) else None


def _problem(lines: list[str]) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile("\n".join(lines) + "\n", "cell", "exec", PARSE_FLAGS, dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"line 1: {error}"
    return None
