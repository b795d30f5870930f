"""What lies ready in a worker for the tasks that run there: sent once, used by many."""

from __future__ import annotations

from typing import Any, Final

_ready: Final[dict[str, Any]] = {}


def put(name: str, content: Any) -> None:
    """Lay something ready under a name."""
    _ready[name] = content


def get(name: str) -> Any:
    """What lies ready under a name."""
    return _ready[name]


def drop(name: str) -> None:
    """Take it away."""
    _ready.pop(name, None)
