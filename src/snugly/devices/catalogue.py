"""The catalogue of devices: `catalogue.toml`, read once and checked while it is read."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from snugly.devices.device import KINDS, Device, RamBlock
from snugly.errors import UnknownDeviceError, suggest
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIZES = ("memory", "visible_memory", "tensorflow_memory", "shared_memory_per_block", "flash")


@cache
def catalogue() -> Mapping[str, Device]:
    """All devices by name, in the file's order."""
    text = files("snugly.devices").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return MappingProxyType(parse_catalogue(text))


def parse_catalogue(text: str) -> dict[str, Device]:
    """Devices from the catalogue's TOML; a figure without a source is refused."""
    return {name: _parse_device(name, table) for name, table in tomllib.loads(text).items()}


def find_device(name: str) -> Device:
    """The device of this name; an unknown name raises with the nearest ones as a hint."""
    devices = catalogue()
    device = devices.get(name.strip().lower())
    if device is None:
        raise UnknownDeviceError(
            f"no device is called {name!r}",
            hint=f"{suggest(name, devices)} `snugly devices` lists all names".strip(),
        )
    return device


def _parse_device(name: str, table: dict[str, Any]) -> Device:
    fields = dict(table)
    if not fields.get("source"):
        raise ValueError(f"{name}: every figure of the catalogue needs a source")
    if fields.get("kind") not in KINDS:
        raise ValueError(f"{name}: kind must be one of {', '.join(KINDS)}")
    for key in _SIZES:
        if key in fields:
            fields[key] = Size(fields[key])
    if "compute_capability" in fields:
        major, minor = fields["compute_capability"].split(".")
        fields["compute_capability"] = (int(major), int(minor))
    fields["ram_blocks"] = tuple(
        RamBlock(block["name"], Size(block["size"])) for block in fields.get("ram_blocks", ())
    )
    return Device(name=name, **fields)
