"""From what the user said (`memory=`, `device=`) to the budget it means."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from snugly.devices.budget import Budget
from snugly.devices.catalogue import find_device
from snugly.devices.host import detect_host
from snugly.errors import InputError
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.devices.device import Device


def budget_for(
    memory: str | SupportsIndex | None = None, device: str | Device | None = None
) -> Budget | None:
    """The budget that `memory=` or `device=` stands for; None if neither was given.

    `device` is a name of the catalogue, `host` (this machine or its container), `gpu:0` (a GPU of
    this machine), or a Device.
    """
    if memory is not None and device is not None:
        raise InputError("both memory and device were given", code="SNG202")
    if memory is not None:
        size = Size(memory)
        return Budget(size, "assumed", "the stated budget")
    if device is None:
        return None
    if not isinstance(device, str):
        return device.offered
    return _offered_by(device.strip().lower())


def _offered_by(name: str) -> Budget:
    if name == "host":
        return detect_host().offered
    if name.startswith("gpu:"):
        return visible_gpu(name).offered
    return find_device(name).offered


def visible_gpu(name: str) -> Device:
    """The GPU of this machine that is called `gpu:N`."""
    gpus = {gpu.name: gpu for gpu in detect_host().gpus}
    if name not in gpus:
        visible = f"visible are {', '.join(gpus)}" if gpus else "no NVIDIA GPU is visible"
        raise InputError(f"there is no {name} on this machine; {visible}", code="SNG203")
    return gpus[name]


def is_gpu(device: str | Device | None) -> bool:
    """Whether what was named runs programs on a GPU."""
    if device is None:
        return False
    if isinstance(device, str):
        name = device.strip().lower()
        if name == "host" or name.startswith("gpu:"):
            return name != "host"
        device = find_device(name)
    return device.kind in {"gpu", "shared-memory-gpu"}
