"""Snugly makes TensorFlow fit.

It says before a run whether a TensorFlow program fits the memory of a device::

    import snugly

    prediction = snugly.predict(model, batch_size=32, training=True, device="jetson-nano")
    print(prediction.verdict, prediction.peak)

Importing `snugly` imports neither TensorFlow nor anything else that is slow: every public name
is loaded when it is first used (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snugly import devices
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
    from snugly.findings import Finding
    from snugly.predicting import Prediction, predict
    from snugly.units import Size

    __version__: str

__all__ = [
    "Budget",
    "Device",
    "Finding",
    "InputError",
    "MemoryLimitExceeded",
    "MissingDependencyError",
    "Prediction",
    "Size",
    "SnuglyError",
    "UnknownDeviceError",
    "UnknownDimensionError",
    "UnsafeProgramError",
    "__version__",
    "devices",
    "predict",
]

_HOME = {
    "Budget": "snugly.devices",
    "Device": "snugly.devices",
    "Finding": "snugly.findings",
    "InputError": "snugly.errors",
    "MemoryLimitExceeded": "snugly.errors",
    "MissingDependencyError": "snugly.errors",
    "Prediction": "snugly.predicting",
    "Size": "snugly.units",
    "SnuglyError": "snugly.errors",
    "UnknownDeviceError": "snugly.errors",
    "UnknownDimensionError": "snugly.errors",
    "UnsafeProgramError": "snugly.errors",
    "predict": "snugly.predicting",
}
"""Where each public name lives; the rooms `devices`, … are modules and load themselves."""


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
