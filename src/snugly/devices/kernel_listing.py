"""The kernels of a CUDA library that cannot be started on a device.

`cuobjdump --dump-resource-usage` lists registers and shared memory of every kernel of a library,
once for each architecture it was compiled for. Its output is read as it comes: TensorFlow's
library has some fifty thousand kernels, one for each type and architecture.

What is not known: with how many threads a program starts a kernel. TensorFlow's simple kernels
are started with 1,024 whatever they use (GetGpuLaunchConfig); others ask the driver first, and
then start with fewer. So each kernel comes with the largest block it can be started with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from snugly.devices.kernels import LARGEST_BLOCK, can_launch, most_threads
from snugly.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from snugly.devices.device import Device

Architecture = tuple[int, int]

_CODE: Final = re.compile(r"Fatbin (elf|ptx) code:")
_ARCHITECTURE: Final = re.compile(r"arch = (?:sm|compute)_(\d{2,3})[a-z]?\s*$")
_FUNCTION: Final = re.compile(r" ?Function (\S{1,4096}):\s*$")
_USAGE: Final = re.compile(r"\s*REG:(\d{1,6}) STACK:(\S{1,20}) SHARED:(\d{1,9})\b")

MOST_KERNELS: Final = 2_000_000
"""More names than any library has; keeps a crafted file from filling memory."""

PROGRESS_EVERY: Final = 500

_SYSTEM_SHARED_MEMORY: Final = 1024
"""From compute capability 9.0 on, cuobjdump counts the system's share of a block's shared memory
in (seen with ptxas 13.4: 50,176 for a kernel that declares 49,152); a block's limit does not."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel as it was compiled for one architecture."""

    name: str
    registers: int
    shared_memory: int
    architecture: Architecture


@dataclass(slots=True)
class Listing:
    """All kernels that a device would load from a library, and what it would not find there."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    compiled_for: set[Architecture] = field(default_factory=set)
    """Architectures with machine code, whether the device can run it or not."""
    portable_to: set[Architecture] = field(default_factory=set)
    """Architectures of PTX, which a newer device compiles when it loads it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A kernel that cannot be started with so many threads, why, and with how many it can."""

    kernel: Kernel
    reason: str
    most_threads: int

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "name": self.kernel.name,
            "registers": self.kernel.registers,
            "shared_memory": self.kernel.shared_memory,
            "architecture": architecture_name(self.kernel.architecture),
            "reason": self.reason,
            "most_threads": self.most_threads,
        }


def architecture_name(architecture: Architecture) -> str:
    """`sm_53`."""
    return "sm_{}{}".format(*architecture)


def parse_architecture(text: str) -> Architecture:
    """`sm_53`, `53` or `5.3`; anything else is refused."""
    written = re.fullmatch(r"(?:sm_|compute_)?(\d{1,2})\.?(\d)[a-z]?", text.strip().lower())
    if written is None:
        raise InputError(f"{text!r:.40} is no GPU architecture", hint="write sm_60, or 6.0")
    return int(written[1]), int(written[2])


def loads(device_architecture: Architecture, compiled_for: Architecture) -> bool:
    """Whether a device runs machine code of an architecture: same major, minor not above."""
    return compiled_for[0] == device_architecture[0] and compiled_for[1] <= device_architecture[1]


def read_listing(
    lines: Iterable[str],
    wanted: Architecture,
    single: Architecture | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Listing:
    """Read what cuobjdump prints; of each kernel, the nearest code that the device runs is kept.

    Args:
        lines: The output, line by line.
        wanted: Architecture of the device.
        single: Architecture of a bare cubin, of which cuobjdump does not say it.
        on_progress: Called now and then with the number of kernels seen.
    """
    listing = Listing()
    is_machine_code = True
    architecture = single
    name: str | None = None
    seen = 0
    for line in lines:
        if code := _CODE.match(line):
            is_machine_code, architecture, name = code[1] == "elf", None, None
        elif header := _ARCHITECTURE.match(line):
            architecture = (int(header[1][:-1]), int(header[1][-1]))
            (listing.compiled_for if is_machine_code else listing.portable_to).add(architecture)
        elif function := _FUNCTION.match(line):
            name = function[1]
        elif name is not None and architecture is not None and (usage := _USAGE.match(line)):
            listing.compiled_for.add(architecture)
            _keep(listing, _kernel(name, usage, architecture), wanted)
            name = None
            seen += 1
            if on_progress is not None and not seen % PROGRESS_EVERY:
                on_progress(seen)
    return listing


def _kernel(name: str, usage: re.Match[str], architecture: Architecture) -> Kernel:
    shared = int(usage[3])
    if architecture >= (9, 0):
        shared = max(shared - _SYSTEM_SHARED_MEMORY, 0)
    return Kernel(name, int(usage[1]), shared, architecture)


def _keep(listing: Listing, kernel: Kernel, wanted: Architecture) -> None:
    if not loads(wanted, kernel.architecture):
        return
    known = listing.kernels.get(kernel.name)
    if known is None and len(listing.kernels) >= MOST_KERNELS:
        raise InputError(
            f"the library has more than {MOST_KERNELS:,} kernels", hint="give a smaller library"
        )
    # Two kernels of one name and architecture are static ones of two files: the larger counts.
    if known is None or _preference(kernel) > _preference(known):
        listing.kernels[kernel.name] = kernel


def _preference(kernel: Kernel) -> tuple[int, int]:
    return kernel.architecture[1], kernel.registers


def refused_kernels(
    listing: Listing, device: Device, threads: int = LARGEST_BLOCK
) -> list[Refused]:
    """Kernels that cannot be started with so many threads, those with most registers first."""
    refused: list[Refused] = []
    for kernel in listing.kernels.values():
        launch = can_launch(device, kernel.registers, threads, kernel.shared_memory)
        if not launch:
            most = most_threads(device, kernel.registers, kernel.shared_memory)
            refused.append(Refused(kernel, launch.reason, most))
    refused.sort(key=lambda one: (one.most_threads, -one.kernel.registers, one.kernel.name))
    return refused
