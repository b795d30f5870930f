"""Sources: which files are linted, and how each is read, decoded and parsed; none is executed."""

from __future__ import annotations

import io
import os
import tokenize
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snugly.errors import InputError, ProgramNotFoundError, UnreadableProgramError
from snugly.linting.notebooks import PARSE_FLAGS, read_notebook
from snugly.units import Size

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

LARGEST_FILE: Final = 32 * 2**20
"""A parsed file takes about a hundred times its size in memory; no source of this size was
written by a person."""

STANDARD_INPUT: Final = "-"

_SUFFIXES: Final = (".py", ".pyw", ".ipynb")
_SKIPPED: Final = frozenset(
    {"__pycache__", "node_modules", "build", "dist", "venv", "env", "site-packages", "_build"}
)


@dataclass(frozen=True, slots=True)
class Source:
    """One file, parsed."""

    path: str
    text: str
    tree: ast.Module
    cells: tuple[tuple[int, int], ...] | None = None
    """For a notebook: cell and line in it of every line."""
    broken: tuple[str, ...] = ()


def find_files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    """The files behind paths, each once: a folder stands for all Python and notebooks in it.

    Hidden folders, virtual environments and what builds leave are passed over, unless they are
    named themselves.
    """
    seen: set[str] = set()
    for given in paths:
        path = os.fspath(given)
        if path == STANDARD_INPUT or not Path(path).is_dir():
            found: Iterable[str] = [path]
        else:
            found = _in_folder(path)
        for one in found:
            real = os.path.realpath(one) if one != STANDARD_INPUT else one
            if real not in seen:
                seen.add(real)
                yield one


def _in_folder(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED
            and not (Path(parent) / name / "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            if name.endswith(_SUFFIXES):
                yield os.path.join(parent, name)  # noqa: PTH118 - keeps "./" as it was written


@lru_cache(maxsize=256)
def _package_of_folder(folder: Path) -> str | None:
    if not (folder / "__init__.py").exists():
        return None
    return _package_of_folder(folder.parent) or folder.name


def package_of(path: str) -> str | None:
    """The outermost package that a file belongs to: `keras` for `keras/src/layers/layer.py`."""
    if path.startswith("<") or path == STANDARD_INPUT:
        return None
    return _package_of_folder(Path(path).absolute().parent)


def read_source(path: str) -> Source:
    """Read and parse one file."""
    return parse_source(_read_bytes(path), path)


def parse_source(data: bytes, path: str) -> Source:
    """Decode and parse what a file holds."""
    if len(data) > LARGEST_FILE:
        raise InputError(
            f"{path} has {Size(len(data))}; more than {Size(LARGEST_FILE)} is not parsed",
            hint="lint the files that people wrote; leave out what is generated",
        )
    if path.endswith(".ipynb"):
        cells = read_notebook(_decode(data, path, "utf-8"), path)
        return Source(path, cells.text, _parse(cells.text, path), cells.places, cells.broken)
    text = _decode(data, path, None)
    return Source(path, text, _parse(text, path))


def _read_bytes(path: str) -> bytes:
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST_FILE:
            with file.open("rb") as stream:
                return stream.read(LARGEST_FILE + 1)
        return file.read_bytes()
    except FileNotFoundError:
        raise ProgramNotFoundError(
            f"there is no file {path}", hint="give a Python file, a notebook or a folder"
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}",
            hint="give a file that this user may read",
        ) from error
    except ValueError as error:  # a path with a null byte
        raise InputError(f"cannot read {path!r}: {error}", hint="give the path of a file") from None


def _decode(data: bytes, path: str, encoding: str | None) -> str:
    """The text of a source: by its byte order mark, its coding line (PEP 263), else UTF-8."""
    try:
        if encoding is None:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except SyntaxError as error:
        raise UnreadableProgramError(
            f"{path}, line 1: {error}",
            hint="the first or second line must name the encoding: # -*- coding: latin-1 -*-",
        ) from error
    except (UnicodeDecodeError, LookupError) as error:
        line = data[: getattr(error, "start", 0)].count(b"\n") + 1
        raise UnreadableProgramError(
            f"{path}, line {line}: not {encoding}: {error}",
            hint="save it as UTF-8, or name its encoding in the first line: # -*- coding: latin-1"
            " -*-",
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _parse(text: str, path: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "invalid escape sequence" is not our matter
            return compile(text, path, "exec", PARSE_FLAGS, dont_inherit=True)
    except SyntaxError as error:
        raise UnreadableProgramError(
            f"{path}, line {error.lineno or 1}: {error.msg}",
            hint=f"Python cannot parse it either; correct line {error.lineno or 1}",
        ) from error
    except ValueError as error:  # null bytes, in Python 3.11
        raise UnreadableProgramError(
            f"{path}: {error}", hint="this is not Python source"
        ) from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableProgramError(
            f"{path} is nested too deeply to be parsed", hint="leave out what is generated"
        ) from error
