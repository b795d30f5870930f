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
from types import CodeType, FunctionType, MethodType, ModuleType
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


def surroundings(function: Any) -> dict[str, Hashable]:
    """What went into a program as constants, by name, each comparable."""
    if isinstance(function, FunctionType):
        return {name: _of(value, 1, set()) for name, value in _read(function)}
    if isinstance(function, MethodType):
        return {**surroundings(function.__func__), **_attributes(function.__self__, 0, set())}
    if isinstance(function, functools.partial):
        return {"": _of(function, 0, set())}
    call = getattr(type(function), "__call__", None)  # noqa: B004 - its code is what is asked for
    around = surroundings(call) if isinstance(call, FunctionType) else {}
    return {**around, **_attributes(function, 0, set())}


def unchanged(before: dict[str, Hashable], after: dict[str, Hashable]) -> dict[str, Hashable]:
    """What a function did not change itself while it was traced: counters say nothing of it."""
    return {name: value for name, value in before.items() if after.get(name) == value}


def still_holds(around: dict[str, Hashable], function: Any) -> bool:
    """Whether everything is as it was."""
    now = surroundings(function)
    return all(now.get(name) == value for name, value in around.items())


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
        return _of(thing.__func__, depth, seen), _of(thing.__self__, depth, seen)
    if isinstance(thing, functools.partial):
        bound = (thing.func, *thing.args, *thing.keywords.values())
        return tuple(_of(part, depth + 1, seen) for part in bound)
    if isinstance(thing, FunctionType):
        return _Same(thing), tuple(_of(value, depth + 1, seen) for _, value in _read(thing))
    if isinstance(thing, (ModuleType, type)):
        return _Same(thing)
    return _Same(thing), tuple(_attributes(thing, depth, seen).items())


def _container(thing: Any, depth: int, seen: set[int]) -> Hashable:
    if len(thing) > _ENTRIES:
        return _Same(thing), len(thing)
    members = [*thing, *thing.values()] if isinstance(thing, dict) else list(thing)
    found = [_of(member, depth + 1, seen) for member in members]
    return type(thing), frozenset(found) if isinstance(thing, (set, frozenset)) else tuple(found)


def _attributes(thing: Any, depth: int, seen: set[int]) -> dict[str, Hashable]:
    """An object's attributes that may go into a program: `solver.dt = 0.1` is another solver."""
    kinds = (*_PLAIN, np.ndarray, list, tuple, dict)
    return {
        f"self.{name}": _of(value, depth + 1, seen)
        for name, value in list(getattr(thing, "__dict__", {}).items())
        if isinstance(value, kinds) and not name.startswith("_")
    }


def _read(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function has in its closure, its defaults, and the globals it names."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            yield name, None
    yield "defaults", function.__defaults__
    yield "keyword defaults", function.__kwdefaults__
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield f"global {name}", function.__globals__[name]


def _names(code: CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*(_names(part) for part in inner))


def _digest(array: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes()).digest()
