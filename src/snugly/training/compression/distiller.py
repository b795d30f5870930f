"""`snugly.training.Distiller`: a real subclass of `keras.Model`, made when it is first asked for.

Importing Keras imports TensorFlow. Its methods stand in `distilling.py`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from snugly.errors import missing_tensorflow
from snugly.training.compression.distilling import Distilling

if TYPE_CHECKING:
    from snugly.training.compression.distilling import Distilling as Distiller

__all__ = ["Distiller"]

_lock = threading.Lock()


def __getattr__(name: str) -> Any:
    if name != "Distiller":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _lock:
        if name not in globals():  # another thread may have been faster: there is one class only
            globals()[name] = _make()
    return globals()[name]


def _make() -> type:
    try:
        import keras
    except ImportError as problem:
        raise missing_tensorflow() from problem
    members = {"__module__": __name__, "__qualname__": "Distiller", "__doc__": Distilling.__doc__}
    return type("Distiller", (Distilling, keras.Model), members)
