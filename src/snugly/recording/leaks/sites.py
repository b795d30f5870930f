"""Sites: the lines of the user's code at which things are made.

Looked up for every eager operation, so the answer for a code object is remembered by its identity
(hashing a code object costs more than walking ten frames).
"""

from __future__ import annotations

import sys
from functools import cache, lru_cache
from inspect import CO_OPTIMIZED
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from snugly.readers.user_code import is_users

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

_INSTALLED = ("site-packages", "dist-packages")
# Forgetting everything now and then bounds a program that makes code for ever.
_MOST_CODES = 20_000
_LONGEST_WAY = 12
_COPIES_LOCALS = sys.version_info < (3, 13)
_OURS_AND_THE_FRAMES = 3  # our variable, the argument, and the frame itself

_MACHINERY, _INSTALLED_PACKAGE, _OWN = 0, 1, 2


class Site(NamedTuple):
    """A line of a file, and the function it lies in."""

    path: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{Path(self.path).name}:{self.line}"


_ranks: dict[int, tuple[CodeType, int]] = {}  # the code object is kept: its identity stays its own


def users_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own files; failing that, of an installed package."""
    ranks = _ranks
    fallback = None
    while frame is not None:
        code = frame.f_code
        known = ranks.get(id(code))
        rank = known[1] if known is not None else _remember(code)
        if rank == _OWN:
            return frame
        if rank == _INSTALLED_PACKAGE and fallback is None:
            fallback = frame
        frame = frame.f_back
    return fallback


def users_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the user's own files, innermost first."""
    while frame is not None:
        if is_own(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def way_of(frame: FrameType | None) -> tuple[Site, ...]:
    """The user's lines from a frame outwards."""
    return tuple(site_of(each) for each in islice(users_frames(frame), _LONGEST_WAY))


def site_of(frame: FrameType) -> Site:
    """Where a frame is now."""
    code = frame.f_code
    return Site(code.co_filename, frame.f_lineno, code.co_name)


def maker_of(made: Any, frame: FrameType | None) -> FrameType | None:
    """The user's frame that makes an object.

    A class of the user's own is made where it is called, not in its `__init__`.
    """
    while frame is not None:
        if is_own(frame.f_code.co_filename) and not _is_making(made, frame):
            return frame
        frame = frame.f_back
    return None


def passes(frame: FrameType | None, *parts: str) -> bool:
    """Whether the way from a frame out to the user's code leads through one of these folders."""
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_own(filename):
            return False
        if any(part in filename for part in parts):
            return True
        frame = frame.f_back
    return False


def _is_making(made: Any, frame: FrameType) -> bool:
    code = frame.f_code
    if code.co_name not in {"__init__", "__new__"} or not code.co_argcount:
        return False
    first = variables_of(frame).get(code.co_varnames[0])
    return first is made or (isinstance(first, type) and isinstance(made, first))


def variables_of(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame, for a moment.

    Before Python 3.13 a function's `f_locals` is a copy that stays with the frame, and keeps alive
    what it holds. It is emptied again, unless the program itself holds it (`locals()`).
    """
    found: Any = frame.f_locals
    if not frame.f_code.co_flags & CO_OPTIMIZED:
        return found
    variables = dict(found)
    if _COPIES_LOCALS and sys.getrefcount(found) <= _OURS_AND_THE_FRAMES:
        found.clear()
    return variables


def _remember(code: CodeType) -> int:
    if len(_ranks) >= _MOST_CODES:
        _ranks.clear()
    rank = _rank(code.co_filename)
    _ranks[id(code)] = (code, rank)
    return rank


def is_own(filename: str) -> bool:
    """Whether a file is the user's own: neither machinery nor an installed package."""
    return _rank(filename) == _OWN


@cache
def _rank(filename: str) -> int:
    if not is_users(filename) or is_ours(filename):
        return _MACHINERY
    installed = any(folder in Path(filename).parts for folder in _INSTALLED)
    return _INSTALLED_PACKAGE if installed else _OWN


@cache
def is_ours(filename: str) -> bool:
    """Whether a file belongs to Snugly."""
    return Path(filename).is_relative_to(Path(__file__).parents[2])


def own_modules() -> list[Any]:
    """The modules that are loaded from the user's own files."""
    names = _own_names(len(sys.modules), id(sys.modules.get("__main__")))
    return [module for name in names if (module := sys.modules.get(name)) is not None]


@lru_cache(maxsize=1)
def _own_names(count: int, main: int) -> tuple[str, ...]:
    """Their names; thousands of modules are gone through only when there are others than before."""
    del count, main
    return tuple(
        name
        for name, module in [*sys.modules.items()]
        if isinstance(filename := getattr(module, "__file__", None), str) and is_own(filename)
    )
