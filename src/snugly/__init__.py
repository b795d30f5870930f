"""Snugly makes TensorFlow fit.

It says before a run whether a TensorFlow program fits the memory of a device::

    import snugly

    prediction = snugly.predict(model, batch_size=32, training=True, device="jetson-nano")
    print(prediction.verdict, prediction.peak)

and what a run really held, with the layer and the line of every byte at its peak::

    with snugly.record("run.snugly") as record:
        model.fit(x, y)
    print(record.peak, record.tensors[0].layer)

Importing `snugly` imports neither TensorFlow nor anything else that is slow: every public name
is loaded when it is first used (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snugly import devices, engines, jacobians, linalg, lite, recording, training
    from snugly.devices import Budget, Device
    from snugly.errors import (
        InputError,
        MemoryLimitExceeded,
        MissingDependencyError,
        SnuglyError,
        UnknownDeviceError,
        UnknownDimensionError,
        UnsafeProgramError,
    )
    from snugly.explaining.explain import explain
    from snugly.findings import Finding
    from snugly.integrations.guard import guard
    from snugly.integrations.keras_callbacks import MemoryMonitor, StopOnMemoryLimit
    from snugly.jacobians.matrix import jacobian
    from snugly.linting.lint import lint
    from snugly.predicting import Prediction, predict
    from snugly.recording.context import record
    from snugly.recording.measuring import measure
    from snugly.recording.record import Record
    from snugly.sweeping import Sweep, sweep
    from snugly.training.batch_size import largest_batch_size
    from snugly.training.checkpoint import checkpoint
    from snugly.training.configure import configure
    from snugly.training.shrinking import shrink
    from snugly.units import Size

    __version__: str

__all__ = [
    "Budget",
    "Device",
    "Finding",
    "InputError",
    "MemoryLimitExceeded",
    "MemoryMonitor",
    "MissingDependencyError",
    "Prediction",
    "Record",
    "Size",
    "SnuglyError",
    "StopOnMemoryLimit",
    "Sweep",
    "UnknownDeviceError",
    "UnknownDimensionError",
    "UnsafeProgramError",
    "__version__",
    "checkpoint",
    "configure",
    "devices",
    "engines",
    "explain",
    "guard",
    "jacobian",
    "jacobians",
    "largest_batch_size",
    "linalg",
    "lint",
    "lite",
    "load_ipython_extension",
    "measure",
    "predict",
    "record",
    "recording",
    "shrink",
    "sweep",
    "training",
    "unload_ipython_extension",
]

_HOME = {
    "Budget": "snugly.devices",
    "Device": "snugly.devices",
    "Finding": "snugly.findings",
    "InputError": "snugly.errors",
    "MemoryLimitExceeded": "snugly.errors",
    "MemoryMonitor": "snugly.integrations.keras_callbacks",
    "MissingDependencyError": "snugly.errors",
    "Prediction": "snugly.predicting",
    "Record": "snugly.recording.record",
    "Size": "snugly.units",
    "SnuglyError": "snugly.errors",
    "StopOnMemoryLimit": "snugly.integrations.keras_callbacks",
    "Sweep": "snugly.sweeping",
    "UnknownDeviceError": "snugly.errors",
    "UnknownDimensionError": "snugly.errors",
    "UnsafeProgramError": "snugly.errors",
    "checkpoint": "snugly.training.checkpoint",
    "configure": "snugly.training.configure",
    "explain": "snugly.explaining.explain",
    "guard": "snugly.integrations.guard",
    "jacobian": "snugly.jacobians.matrix",
    "largest_batch_size": "snugly.training.batch_size",
    "lint": "snugly.linting.lint",
    "measure": "snugly.recording.measuring",
    "predict": "snugly.predicting",
    "record": "snugly.recording.context",
    "shrink": "snugly.training.shrinking",
    "sweep": "snugly.sweeping",
}
"""Where each public name lives; the rooms `devices`, … are modules and load themselves."""


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext snugly` runs: gives a notebook `%%snugly_profile` and `%%snugly_guard`."""
    from snugly.integrations.notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext snugly` runs."""
    from snugly.integrations.notebook import unload

    unload(shell)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("snugly")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in __all__:
        value = import_module(f"snugly.{name}")
    else:
        raise AttributeError(f"module 'snugly' has no attribute {name!r}")
    globals()[name] = value  # asked once, found at once the next time
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
