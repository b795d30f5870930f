"""Trace a user's objects and leave them as they were.

Tracing a training step makes Keras build what it had put off: optimizer slots, metrics, layers that
were never called. Built inside our graph they would be of no use to their owner, and their owner's
next `fit` would fail. So we remember what every reachable object consisted of, and put it back.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def untouched(*roots: Any) -> Iterator[None]:
    """Whatever happens inside to these objects, and to what they are made of, is undone."""
    remembered = _remember(roots)
    try:
        yield
    finally:
        for restore, thing, content in remembered:
            restore(thing, content)


def _remember(roots: tuple[Any, ...]) -> list[tuple[Any, Any, Any]]:
    remembered: list[tuple[Any, Any, Any]] = []
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        # By type, not isinstance: TensorFlow wraps containers in proxies that claim to be what they
        # wrap.
        kind = type(thing)
        if issubclass(kind, list):
            remembered.append((_restore_list, thing, list.copy(thing)))
            waiting.extend(list.copy(thing))
            waiting.append(getattr(thing, "_storage", None))  # a ListWrapper keeps a second list
        elif issubclass(kind, dict):
            remembered.append((_restore_dict, thing, dict(thing)))
            waiting.extend(thing.values())
        elif issubclass(kind, set):
            remembered.append((_restore_set, thing, set(thing)))
        elif issubclass(kind, tuple):
            waiting.extend(thing)
        elif isinstance(thing, (list, dict, tuple)):
            waiting.append(getattr(thing, "__wrapped__", None))
        elif _is_part_of_a_model(thing):
            remembered.append((_restore_object, thing, dict(vars(thing))))
            waiting.extend(vars(thing).values())
    return remembered


def _is_part_of_a_model(thing: Any) -> bool:
    """Keras objects and what users derive from them; not modules, classes, functions or tensors."""
    if isinstance(thing, type) or not hasattr(thing, "__dict__"):
        return False
    return any(base.__module__.partition(".")[0] == "keras" for base in type(thing).__mro__)


# The base classes' own methods, because Keras's tracking containers refuse or record changes.


def _restore_list(thing: list[Any], content: list[Any]) -> None:
    list.__setitem__(thing, slice(None), content)


def _restore_dict(thing: dict[Any, Any], content: dict[Any, Any]) -> None:
    dict.clear(thing)
    dict.update(thing, content)


def _restore_set(thing: set[Any], content: set[Any]) -> None:
    set.clear(thing)
    set.update(thing, content)


def _restore_object(thing: Any, content: dict[str, Any]) -> None:
    attributes = vars(thing)
    attributes.clear()
    attributes.update(content)
