"""What a function reads besides its input: a compiled program holds it as it was.

A program is kept for a second call with the same function. Numbers and arrays that the function
took from around it (closures, globals, defaults, the object a method belongs to) went into that
program as constants; when one of them has changed since, the program would compute what the
function no longer does. So they are part of what must be the same. Variables are read at every run.
"""

from __future__ import annotations

import functools
import hashlib
import weakref
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), np.generic)
_DEPTH: Final = 6
"""How far functions that are called by functions, and containers in containers, are followed."""
_ENTRIES: Final = 1000
"""Of larger containers only the length is looked at."""


class _Same:
    """Equal to another of its kind as long as both mean the same living object."""

    __slots__ = ("_number", "_thing")

    def __init__(self, thing: Any) -> None:
        self._number = id(thing)
        try:
            self._thing = weakref.ref(thing)
        except TypeError:  # modules' and containers' members that cannot be referred to weakly
            self._thing = lambda: thing

    def __eq__(self, other: object) -> bool:
        mine = self._thing()
        return isinstance(other, _Same) and mine is not None and mine is other._thing()

    def __hash__(self) -> int:
        return self._number


def surroundings(function: Any) -> Hashable:
    """Everything that went into a program as a constant, comparable."""
    return _of(function, 0, set())


def _of(thing: Any, depth: int, seen: set[int]) -> Hashable:  # noqa: PLR0911 - a kind each
    if isinstance(thing, _PLAIN):
        return type(thing), repr(thing) if isinstance(thing, float) else thing
    if id(thing) in seen or depth > _DEPTH:
        return _Same(thing)
    seen = {*seen, id(thing)}
    if isinstance(thing, np.ndarray):
        return thing.shape, thing.dtype.str, _digest(thing)
    if isinstance(thing, (list, tuple, set, frozenset, dict)):
        return _container(thing, depth, seen)
    if isinstance(thing, MethodType):
        return _of(thing.__func__, depth, seen), _object(thing.__self__, depth, seen)
    if isinstance(thing, functools.partial):
        bound = (thing.func, *thing.args, *thing.keywords.values())
        return tuple(_of(part, depth + 1, seen) for part in bound)
    if isinstance(thing, FunctionType):
        return _Same(thing), tuple(_of(value, depth + 1, seen) for value in _read(thing))
    return _object(thing, depth, seen) if depth == 0 else _Same(thing)


def _container(thing: Any, depth: int, seen: set[int]) -> Hashable:
    if len(thing) > _ENTRIES:
        return _Same(thing), len(thing)
    members = [*thing, *thing.values()] if isinstance(thing, dict) else list(thing)
    found = [_of(member, depth + 1, seen) for member in members]
    return type(thing), frozenset(found) if isinstance(thing, (set, frozenset)) else tuple(found)


def _object(thing: Any, depth: int, seen: set[int]) -> Hashable:
    """The object itself, and its plain attributes: `solver.dt = 0.1` is another solver."""
    attributes = getattr(thing, "__dict__", {})
    kept = [
        (name, _of(value, depth + 1, seen))
        for name, value in list(attributes.items())
        if isinstance(value, (*_PLAIN, np.ndarray, list, tuple, dict)) and not name.startswith("_")
    ]
    return _Same(thing), tuple(kept)


def _read(function: FunctionType) -> Iterator[Any]:
    """The values of a function's closure, defaults, and the globals it names."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            yield None
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield function.__globals__[name]


def _names(code: CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*(_names(part) for part in inner))


def _digest(array: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes()).digest()
