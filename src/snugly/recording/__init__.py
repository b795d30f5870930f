"""A run → Record: what was allocated, when, by which layer and line; what grows without end.

`snugly.record`, `snugly.measure` and `snugly.Record` are the ways in; `snugly.recording.leaks` is
loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snugly.recording import leaks

__all__ = ["leaks"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in __all__:
        return import_module(f"snugly.recording.{name}")
    raise AttributeError(f"module 'snugly.recording' has no attribute {name!r}")
