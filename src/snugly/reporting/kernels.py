"""Kernels that cannot be started on a device, as data and as a drawing."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Group
from rich.text import Text

from snugly.devices.kernel_listing import architecture_name
from snugly.reporting.record import shown
from snugly.reporting.terminal import make_console, make_facts, make_table
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from snugly.devices.device import Device
    from snugly.devices.kernel_listing import Architecture, Listing, Refused

Loaded = Literal["machine code", "ptx", "nothing"]

_NAME_WIDTH = 110


@dataclass(frozen=True, slots=True)
class KernelReport:
    """What was asked of a library, and what came of it."""

    library: str
    device: Device
    architecture: Architecture
    """That of the device, or the one that stands in for it."""
    threads: int
    listing: Listing
    refused: Sequence[Refused]
    """All of them, worst first."""
    names: Sequence[str]
    """Demangled names of the first of `refused`; as many as are shown."""

    @property
    def loaded(self) -> Loaded:
        """What the device would load of the library."""
        if self.listing.kernels:
            return "machine code"
        if any(one <= self.architecture for one in self.listing.portable_to):
            return "ptx"
        return "nothing"

    @property
    def found(self) -> bool:
        """Whether anything is wrong, or the device can run nothing of the library."""
        return bool(self.refused) or self.loaded == "nothing"


def kernels_data(report: KernelReport) -> dict[str, Any]:
    """Plain data for JSON."""
    listing = report.listing
    listed = zip(report.refused, report.names, strict=False)
    return {
        "kernels": {
            "library": report.library,
            "device": report.device.name,
            "architecture": architecture_name(report.architecture),
            "compiled_for": [architecture_name(one) for one in sorted(listing.compiled_for)],
            "ptx_for": [architecture_name(one) for one in sorted(listing.portable_to)],
            "loaded": report.loaded,
            "threads": report.threads,
            "count": len(listing.kernels),
            "refused_count": len(report.refused),
            "refused": [one.to_data() | {"written": name} for one, name in listed],
        }
    }


def draw_kernels(report: KernelReport) -> RenderableType:
    """The verdict in a sentence, what it rests on, and the kernels."""
    listing = report.listing
    facts: list[tuple[str, str | Text]] = [
        ("library", shown(report.library)),
        ("device", f"{report.device.name}, {architecture_name(report.architecture)}"),
        ("machine code for", _names(listing.compiled_for)),
        ("PTX for", _names(listing.portable_to)),
    ]
    parts: list[RenderableType] = [_verdict(report), make_facts(facts)]
    if report.names:
        parts += [Text(""), _table(report)]
    hidden = len(report.refused) - len(report.names)
    if hidden > 0:
        parts.append(Text(f"… and {hidden:,} more; --limit {len(report.refused)}", style="dim"))
    if report.refused:
        parts.append(Text(_advice(report), style="dim"))
    return Group(*parts)


@contextmanager
def counting() -> Iterator[Callable[[int], None] | None]:
    """A line on a terminal that says how many kernels have been read; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    with make_console(aside=True).status("reading kernels") as line:
        yield lambda count: line.update(f"{count:,} kernels read")


def _verdict(report: KernelReport) -> Text:
    name = report.device.name
    count = len(report.listing.kernels)
    if report.loaded == "nothing":
        return Text(
            f"nothing of this library runs on {name}: it has neither machine code nor PTX for"
            f" {architecture_name(report.architecture)} ('no kernel image is available')",
            style="bold red",
        )
    if report.loaded == "ptx":
        return Text(
            f"not known: {name} compiles the library's PTX when it loads it, and the registers"
            " are only known then",
            style="bold yellow",
        )
    if report.refused:
        return Text(
            f"{len(report.refused):,} of {count:,} kernels cannot be started on {name} with"
            f" {report.threads:,} threads",
            style="bold red",
        )
    return Text(
        f"all {count:,} kernels can be started on {name} with {report.threads:,} threads",
        style="bold green",
    )


def _table(report: KernelReport) -> RenderableType:
    right = ("registers", "shared", "starts with up to")
    table = make_table("registers", "shared", "starts with up to", "kernel", right=right)
    for one, name in zip(report.refused, report.names, strict=False):
        most = f"{one.most_threads:,} threads" if one.most_threads else "none"
        table.add_row(
            str(one.kernel.registers),
            str(Size(one.kernel.shared_memory)),
            most,
            shown(name, _NAME_WIDTH),
        )
    return table


def _advice(report: KernelReport) -> str:
    return (
        "\nWith how many threads a program starts a kernel is not in the library:"
        f" {report.threads:,} is assumed; TensorFlow starts simple kernels with 1,024. A refused"
        " launch says 'too many resources requested for launch', and is not about memory. Run such"
        " an op on the CPU:"
        ' tf.device("/CPU:0").'
    )


def _names(architectures: Iterable[Architecture]) -> str:
    return ", ".join(architecture_name(one) for one in sorted(architectures)) or "none"
