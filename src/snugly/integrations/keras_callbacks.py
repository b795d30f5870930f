"""Keras callbacks: `snugly.MemoryMonitor` and `snugly.StopOnMemoryLimit`.

They are real subclasses of `keras.callbacks.Callback`, made when they are first asked for, because
importing Keras imports TensorFlow. Their methods stand in `monitor.py` and `memory_limit.py`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import MissingDependencyError
from snugly.integrations.memory_limit import Limiting
from snugly.integrations.monitor import Monitoring

if TYPE_CHECKING:
    from snugly.integrations.memory_limit import Limiting as StopOnMemoryLimit
    from snugly.integrations.monitor import Monitoring as MemoryMonitor

__all__ = ["MemoryMonitor", "StopOnMemoryLimit"]

_METHODS: Final = {"MemoryMonitor": Monitoring, "StopOnMemoryLimit": Limiting}
_lock = threading.Lock()


def __getattr__(name: str) -> Any:
    if name not in _METHODS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _lock:
        if name not in globals():  # another thread may have been faster: there is one class only
            globals()[name] = _make(name)
    return globals()[name]


def _make(name: str) -> type:
    methods = _METHODS[name]
    try:
        import keras
    except ImportError as problem:
        raise MissingDependencyError(
            f"snugly.{name} is a callback of Keras, which is not installed",
            hint="pip install 'snugly[tensorflow]'",
        ) from problem
    # Pickle finds the class again by these two names.
    members = {"__module__": __name__, "__qualname__": name, "__doc__": methods.__doc__}
    return type(name, (methods, keras.callbacks.Callback), members)
