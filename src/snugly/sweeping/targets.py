"""What predictions are judged against, and for which of them one prediction is enough.

A device is a budget, and a kind of machine: the same step on a T4 and on an A100 is one prediction
with two verdicts. Only a microcontroller is a kind by itself, as the layout of TFLite Micro's arena
depends on it; such a prediction needs no TensorFlow and takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from snugly.devices import Budget, Device, budget_for, detect_host, find_device, is_gpu
from snugly.devices.choice import visible_gpu
from snugly.errors import InputError


@dataclass(frozen=True, slots=True)
class Target:
    """A budget, and the device that offers it. Without one: this machine, and no verdict."""

    budget: Budget | None = None
    device: Device | None = None
    machine: str | None = None
    """The kind of machine that TensorFlow runs on there: "gpu", "cpu"; None for the one it sees."""

    def kind(self, *, lite: bool) -> str:
        """Targets of one kind share predictions of a program (of a `.tflite` file)."""
        if not lite:
            return self.machine or "here"
        is_micro = self.device is not None and self.device.kind == "microcontroller"
        return self.device.name if self.device is not None and is_micro else "lite"


def targets_of(devices: Any, memory: Any) -> list[Target]:
    """Devices by name (or as `Device`), or sizes, or nothing; each once, in their order.

    Raises:
        InputError: Both were given, or an empty list; an unknown name raises with the nearest ones.
    """
    if devices is not None and memory is not None:
        raise InputError("both memory and devices were given", code="SNG202")
    if devices is None and memory is None:
        return [Target()]
    many = _devices(devices) if memory is None else _sizes(memory)
    if not many:
        raise InputError(
            "there is no device to predict for", hint="give devices=['t4'], or leave it out"
        )
    return list(dict.fromkeys(many))


def _sizes(memory: Any) -> list[Target]:
    return [Target(budget_for(size)) for size in _many(memory)]


def _devices(devices: Any) -> list[Target]:
    return [_target(device) for device in _many(devices)]


def _many(given: Any) -> Iterable[Any]:
    is_one = isinstance(given, str) or not isinstance(given, Iterable)
    return [given] if is_one else given


def _target(device: Any) -> Target:
    if not isinstance(device, str | Device):
        raise InputError(
            f"{device!r:.80} is neither a device nor the name of one",
            code="SNG201",
            hint="give devices=['t4', 'jetson-nano']; `snugly devices` lists all names",
        )
    machine = "gpu" if is_gpu(device) else "cpu"
    if isinstance(device, Device):
        return Target(device.offered, device, machine)
    name = device.strip().lower()
    if name == "host":
        return Target(detect_host().offered, None, machine)
    found = visible_gpu(name) if name.startswith("gpu:") else find_device(name)
    return Target(found.offered, found, machine)
