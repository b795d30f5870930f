"""The parts of TensorFlow that a guard replaces or calls, once the program has loaded it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any


def is_ready() -> bool:
    """Whether the program has imported all of TensorFlow that is needed."""
    module = sys.modules.get("tensorflow")
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)


@dataclass(slots=True)
class Parts:
    """What is replaced, and what it is called with."""

    runtime: Any
    context: Any
    constants: Any
    execute: Any
    cancellation: Any
    status: type[Exception]
    tensors: Any
    scripts: Any
    datasets: Any
    casts: Any
    numpy: Any
    array: type


def find_parts() -> Parts:
    """Those of the TensorFlow that the program has imported."""

    def module(name: str) -> Any:
        return import_module(f"tensorflow.python.{name}")

    return Parts(
        runtime=module("pywrap_tfe"),
        context=module("eager.context"),
        constants=module("framework.constant_op"),
        execute=module("eager.execute"),
        cancellation=module("eager.cancellation"),
        status=module("eager.core")._NotOkStatusException,  # noqa: SLF001 - what the runtime raises
        tensors=module("framework.ops"),
        scripts=module("ops.script_ops"),
        datasets=module("data.ops.dataset_ops"),
        casts=module("ops.math_ops"),
        numpy=import_module("numpy"),
        array=import_module("numpy").ndarray,
    )
