"""Holders: what keeps an object alive, and by which names the user's code knows it.

Asks Python's collector for referrers, and looks through the namespaces of the user's modules and
running functions, which the collector may have set aside (`gc.freeze`).
"""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.recording.leaks.sites import is_ours, is_own, own_modules, users_frames, variables_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONTAINERS = (list, dict, set, deque)
_DEEPEST = 4
_MOST_REFERRERS = 40
_LRU = functools._lru_cache_wrapper  # noqa: SLF001 - the type has no public name
_SEVERAL = 3
_NOT_KEPT_IN = (types.FrameType, types.FunctionType, types.ModuleType, type)


@dataclass(frozen=True, slots=True)
class Name:
    """A name for a container in someone's code."""

    name: str
    path: str | None  # the file in which the name belongs
    owner: type | None = None  # the class whose attribute it is
    is_own: bool = True  # whether the user's files define it; else it is machinery's
    scope: int | None = None  # first line of the function whose variable it is
    is_shared: bool = False  # a function around it shares the variable

    @property
    def is_attribute(self) -> bool:
        """Whether it is reached as `something.name`."""
        return self.owner is not None

    @property
    def is_callback(self) -> bool:
        """Whether a Keras callback has it."""
        return self.owner is not None and is_callback(self.owner)

    def __str__(self) -> str:
        return f"{self.owner.__name__}.{self.name}" if self.owner else self.name


def is_callback(owner: type) -> bool:
    """Whether a class is a Keras callback."""
    return any(
        cls.__name__ == "Callback" and str(cls.__module__).startswith("keras.")
        for cls in owner.__mro__
    )


def is_bounded(container: Any) -> bool:
    """Whether a container forgets by itself: a deque or a cache with a limit."""
    if isinstance(container, deque):
        return container.maxlen is not None
    if isinstance(container, _LRU):
        return container.cache_parameters()["maxsize"] is not None
    return False


def has_fixed_places(holder: Any) -> bool:
    """Whether what is held has a name of its own each: attributes of an object, not of a list."""
    if not isinstance(holder, (*CONTAINERS, _LRU)):
        return True
    if not isinstance(holder, dict):
        return False
    owners = _Search().referrers([holder])
    return any(getattr(owner, "__dict__", None) is holder for owner in owners)


def common_holder(items: list[Any]) -> Any | None:
    """The container that holds several of these, directly or as parts of its items."""
    return _Search().common_holder(items)


def names_of(container: Any) -> list[Name]:
    """The names by which code knows a container, or the container that it lies in."""
    names = _Search().names_of(container, _DEEPEST)
    if not any(name.is_own for name in names):
        names += _below_namespaces(container)
    return list(dict.fromkeys(names))


class _Search:
    """One search upwards; it overlooks the lists that it makes itself."""

    def __init__(self) -> None:
        self._ours: set[int] = set()
        self._lists: list[Any] = []  # alive until the end, so that their identities stay theirs
        self._ours.add(id(self._lists))

    def referrers(self, items: list[Any]) -> list[Any]:
        found = gc.get_referrers(*items)
        self._lists += [items, found]
        self._ours |= {id(items), id(found)}
        kept = [
            referrer
            for referrer in found
            if id(referrer) not in self._ours
            and not (isinstance(referrer, types.FrameType) and is_ours(referrer.f_code.co_filename))
        ][:_MOST_REFERRERS]
        self._lists.append(kept)
        self._ours.add(id(kept))
        return kept

    def common_holder(self, items: list[Any]) -> Any | None:
        level = items
        for _ in range(_DEEPEST):
            referrers = self.referrers(level)
            wanted = {id(item) for item in level}
            best, most = None, min(_SEVERAL, len(wanted)) - 1
            for referrer in referrers:
                held = sum(id(part) in wanted for part in _referents(referrer))
                if held > most and self._is_holder(referrer, held):
                    best, most = referrer, held
            if best is not None:
                return self._cache_of(best) or best
            level = [each for each in referrers if not isinstance(each, _NOT_KEPT_IN)]
            level = level[: 2 * len(items)]
            if not level:
                return None
        return None

    @staticmethod
    def _is_holder(referrer: Any, held: int) -> bool:
        """A container, or an object that has several of them as attributes."""
        if isinstance(referrer, (*CONTAINERS, _LRU)):
            return True
        return held >= _SEVERAL and not isinstance(referrer, (*_NOT_KEPT_IN, tuple))

    def _cache_of(self, container: Any) -> Any | None:
        """The cached function whose results a dictionary holds."""
        if not isinstance(container, dict):
            return None
        return next((each for each in self.referrers([container]) if isinstance(each, _LRU)), None)

    def names_of(self, container: Any, depth: int) -> list[Name]:
        if isinstance(container, _LRU):
            return _of_function(container.__wrapped__)
        names = [*_in_namespaces(container)]
        for referrer in self.referrers([container]):
            names += self._names_through(referrer, container, depth)
        return names

    def _names_through(  # noqa: PLR0911 - one for each kind of thing that refers
        self, referrer: Any, held: Any, depth: int
    ) -> list[Name]:
        if isinstance(referrer, types.FrameType):
            return _in_locals(referrer, held)
        if isinstance(referrer, types.GeneratorType):
            return _in_locals(referrer.gi_frame, held)
        if isinstance(referrer, dict):
            return self._in_dictionary(referrer, held, depth)
        if isinstance(referrer, types.CellType):
            return self._in_closures(referrer)
        if isinstance(referrer, tuple):
            defaults = self._in_defaults(referrer, held)
            if defaults:
                return defaults
        if isinstance(referrer, (list, tuple, set, deque)):
            return self.names_of(referrer, depth - 1) if depth else []
        if isinstance(referrer, _NOT_KEPT_IN):
            return []
        return _in_attributes(referrer, held)

    def _in_dictionary(self, dictionary: dict[Any, Any], held: Any, depth: int) -> list[Name]:
        keys = [key for key, value in [*dictionary.items()] if value is held]
        names = [key for key in keys if isinstance(key, str)]
        for owner in self.referrers([dictionary]):
            if isinstance(owner, type) and "__module__" in dictionary:
                return [_attribute(name, owner) for name in names]
            if getattr(owner, "__dict__", None) is dictionary:
                if isinstance(owner, types.ModuleType):
                    return [_global(name, dictionary) for name in names]
                return [_attribute(name, type(owner)) for name in names]
        if "__builtins__" in dictionary:
            return [_global(name, dictionary) for name in names]
        return self.names_of(dictionary, depth - 1) if depth else []

    def _in_closures(self, cell: types.CellType) -> list[Name]:
        names: list[Name] = []
        for closure in self.referrers([cell]):
            if not isinstance(closure, tuple):
                continue
            index = next((i for i, each in enumerate(closure) if each is cell), None)
            for function in self.referrers([closure]):
                if isinstance(function, types.FunctionType) and function.__closure__ is closure:
                    assert index is not None
                    code = function.__code__
                    own = is_own(code.co_filename)
                    name = code.co_freevars[index]
                    names.append(Name(name, code.co_filename, None, own, is_shared=True))
        return names

    def _in_defaults(self, defaults: tuple[Any, ...], held: Any) -> list[Name]:
        """A mutable default, `def f(x, seen=[])`."""
        for function in self.referrers([defaults]):
            if isinstance(function, types.FunctionType) and function.__defaults__ is defaults:
                code = function.__code__
                first = code.co_argcount - len(defaults)
                index = next(i for i, each in enumerate(defaults) if each is held)
                name = code.co_varnames[first + index]
                own = is_own(code.co_filename)
                return [Name(name, code.co_filename, None, own, code.co_firstlineno)]
        return []


def _of_function(function: Any) -> list[Name]:
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    return [Name(function.__name__, code.co_filename, None, is_own(code.co_filename))]


def _global(name: str, namespace: dict[str, Any]) -> Name:
    path = namespace.get("__file__")
    return Name(name, path, None, isinstance(path, str) and is_own(path))


def _attribute(name: str, owner: type) -> Name:
    path = getattr(sys.modules.get(str(owner.__module__)), "__file__", None)
    own = isinstance(path, str) and is_own(path)
    # A script's classes outlive its module where another has run it as `__main__`.
    return Name(name, path, owner, own or str(owner.__module__) == "__main__")


def _in_attributes(owner: Any, held: Any) -> list[Name]:
    state = getattr(owner, "__dict__", None)
    if isinstance(state, dict):
        names = [key for key, value in [*state.items()] if value is held]
        return [_attribute(name, type(owner)) for name in names]
    slots = [name for cls in type(owner).__mro__ for name in vars(cls).get("__slots__", ())]
    return [_attribute(name, type(owner)) for name in slots if getattr(owner, name, None) is held]


def _in_locals(frame: types.FrameType | None, held: Any) -> list[Name]:
    if frame is None or is_ours(frame.f_code.co_filename):
        return []
    code = frame.f_code
    path = code.co_filename
    scope = None if code.co_name == "<module>" else code.co_firstlineno
    names = [key for key, value in [*variables_of(frame).items()] if value is held]
    return [Name(name, path, None, is_own(path), scope) for name in names]


def _in_namespaces(held: Any) -> Iterator[Name]:
    for module in own_modules():
        for key, value in [*vars(module).items()]:
            if value is held:
                yield _global(key, vars(module))
    for frame in running_frames():
        yield from _in_locals(frame, held)


def _below_namespaces(held: Any) -> list[Name]:
    """In attributes of what the user's modules and functions name."""
    names: list[Name] = []
    for namespace in namespaces():
        for value in [*namespace.values()]:
            if isinstance(value, types.ModuleType):
                continue
            state = getattr(value, "__dict__", None)
            if isinstance(state, (dict, types.MappingProxyType)):
                owner = value if isinstance(value, type) else type(value)
                names += [_attribute(key, owner) for key, each in [*state.items()] if each is held]
            elif isinstance(value, dict) and any(each is held for each in [*value.values()]):
                names += [*_in_namespaces(value)]
    return names


def roots() -> Iterator[Any]:
    """Containers that the user's code can name; the collector may have set them aside."""
    for namespace in namespaces():
        for value in [*namespace.values()]:
            if isinstance(value, CONTAINERS):
                yield value
            elif isinstance(value, types.FunctionType):
                yield from _in_cells(value)
            elif not isinstance(value, types.ModuleType):
                state = getattr(value, "__dict__", None)
                if isinstance(state, (dict, types.MappingProxyType)):
                    yield from (each for each in [*state.values()] if isinstance(each, CONTAINERS))


def _in_cells(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            if isinstance(cell.cell_contents, CONTAINERS):
                yield cell.cell_contents
        except ValueError:
            continue  # the cell is empty yet
    yield from (each for each in function.__defaults__ or () if isinstance(each, CONTAINERS))


def namespaces() -> Iterator[dict[str, Any]]:
    """The variables of the user's modules and running functions."""
    for module in own_modules():
        yield vars(module)
    for frame in running_frames():
        yield variables_of(frame)


def running_frames() -> Iterator[types.FrameType]:
    """The frames of the user's functions that are running, in all threads."""
    for frame in [*sys._current_frames().values()]:  # noqa: SLF001 - the documented way
        yield from users_frames(frame)


def _referents(referrer: Any) -> Iterable[Any]:
    if isinstance(referrer, dict):
        return [*referrer.values()]
    if isinstance(referrer, (list, tuple, set, deque)):
        return [*referrer]
    return gc.get_referents(referrer)
