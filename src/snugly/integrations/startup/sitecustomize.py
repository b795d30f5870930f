"""Imported by Python itself in commands under `snugly run --gpu-memory`.

Waits until the program imports TensorFlow, and gives each GPU a limit before anything runs there.
Uses nothing but the standard library: the command's Python need not have Snugly. Whatever goes
wrong here is said and must not end the command.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as little as possible is imported
VARIABLE = "_SNUGLY_GPU_MEMORY_MIB"


class _AfterImport:
    """A finder that lets the others find TensorFlow, and does its work when it was executed."""

    def __init__(self, mebibytes: int) -> None:
        self.mebibytes = mebibytes

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        """Python's interface of a finder."""
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def then_limit(module: Any) -> None:
            execute(module)
            _limit(module, self.mebibytes)

        spec.loader.exec_module = then_limit  # type: ignore[method-assign] # the loader's own, once
        return spec


def _limit(tensorflow: Any, mebibytes: int) -> None:
    try:
        config = tensorflow.config
        gpus = config.list_physical_devices("GPU")
        for gpu in gpus:
            config.set_logical_device_configuration(
                gpu, [config.LogicalDeviceConfiguration(memory_limit=mebibytes)]
            )
        if gpus:  # growth and a limit exclude each other, and programs often ask for growth
            config.experimental.set_memory_growth = _no_growth
    except Exception as problem:  # noqa: BLE001 - the command goes on
        _say(f"the limit of the GPU could not be set: {problem}")


def _no_growth(device: object, enable: object) -> None:  # noqa: ARG001 - TensorFlow's interface
    _say("set_memory_growth is left out, because --gpu-memory limits the GPU")


def _say(text: str) -> None:
    print("snugly: " + text, file=sys.stderr)  # noqa: T201 - there is no other way here


def _next_sitecustomize() -> None:
    """The one that this one hides, if there is any."""
    others = [path for path in sys.path if os.path.abspath(path or ".") != HERE]  # noqa: PTH100 - as above
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get(VARIABLE, "").isdecimal():
    sys.meta_path.insert(0, _AfterImport(int(os.environ[VARIABLE])))  # type: ignore[arg-type] # it finds, and nothing else
_next_sitecustomize()
