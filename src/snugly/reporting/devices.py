"""Devices and this host, as data and as drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from snugly.devices.kernels import (
    LARGEST_BLOCK,
    determinant_kernel_can_launch,
    launch_limit_in_words,
    most_registers,
)
from snugly.reporting.terminal import make_facts, make_table, marked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from snugly.devices import Device, Host


def list_data(devices: Sequence[Device]) -> dict[str, Any]:
    """All devices, as `snugly devices --output-format json` prints them."""
    return {"devices": [device.to_data() for device in devices]}


def device_data(device: Device) -> dict[str, Any]:
    """One device, and what kernels may use of it."""
    launch = {
        "threads": LARGEST_BLOCK,
        "registers_per_thread": most_registers(device),
        "tensorflow_determinant": determinant_kernel_can_launch(device),
    }
    return {"device": device.to_data() | {"launch": launch}}


def host_data(host: Host) -> dict[str, Any]:
    """This machine."""
    return {"host": host.to_data()}


def draw_list(devices: Sequence[Device]) -> RenderableType:
    """A table of all devices."""
    table = make_table("device", "memory", "offers", "", "kind", "what it is", right=("offers",))
    for device in devices:
        table.add_row(
            Text(device.name, style="bold"),
            _memory(device),
            str(device.offered.bytes),
            Text(device.offered.provenance, style="dim"),
            device.kind,
            device.title,
        )
    explanation = Text(
        "\noffers: what TensorFlow's allocator can have of it (on a microcontroller: the largest"
        " block of RAM)\n`snugly devices NAME` shows one device with its sources;"
        " `snugly devices host` shows this machine",
        style="dim",
    )
    return Group(table, explanation)


def draw_device(device: Device) -> RenderableType:
    """One device, with the source of its figures."""
    facts: list[tuple[str, str | Text]] = [
        ("kind", device.kind),
        ("memory", _memory(device)),
    ]
    if device.visible_memory is not None:
        facts.append(("visible", marked(device.visible_memory, "measured")))
    if device.free_memory is not None:
        facts.append(("free now", marked(device.free_memory, "measured")))
    facts.append(("offers", marked(device.offered.bytes, device.offered.provenance)))
    if device.compute_capability is not None:
        facts.append(("compute capability", "{}.{}".format(*device.compute_capability)))
    if device.registers_per_block is not None:
        facts.append(("registers a block", f"{device.registers_per_block:,}"))
    if device.shared_memory_per_block is not None:
        facts.append(("shared memory a block", str(device.shared_memory_per_block)))
    words = launch_limit_in_words(device)
    if words is not None:
        facts.append(("so", words))
    facts += [(f"block {block.name}", str(block.size)) for block in device.ram_blocks]
    if device.flash is not None:
        facts.append(("flash", str(device.flash)))
    facts.append(("source", device.source))
    return Group(Text.assemble((device.name, "bold"), f"  {device.title}"), make_facts(facts))


def draw_host(host: Host) -> RenderableType:
    """This machine."""
    facts: list[tuple[str, str | Text]] = []
    if host.board is not None:
        shared = ", CPU and GPU share its memory" if host.is_jetson else ""
        facts.append(("board", f"{host.board}{shared}"))
    facts += [
        ("memory", marked(host.total, "measured")),
        ("available now", marked(host.available, "measured")),
    ]
    if host.cgroup is not None:
        where = f"{host.cgroup.limit}, {host.cgroup.used} used, {host.cgroup.path}"
        facts.append((f"control group v{host.cgroup.version}", marked(where, "measured")))
    facts.append(("offers", marked(host.offered.bytes, host.offered.provenance)))
    title = Text.assemble(("host", "bold"), "  this machine")
    if not host.gpus:
        facts.append(("GPUs", "none visible through NVML"))
    return Group(title, make_facts(facts), *(draw_device(gpu) for gpu in host.gpus))


def _memory(device: Device) -> str:
    return f"{device.memory}" if device.verified else f"{device.memory} (assumed)"
