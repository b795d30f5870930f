"""Look at TensorFlow's build and settings, this machine's limits, and known hazards.

Nothing is changed and TensorFlow is not imported. Put the output into bug reports.

With --kernels LIB --device NAME: list the CUDA kernels of a library that cannot be started on a
device ("too many resources requested for launch"), from NVIDIA's cuobjdump. LIB is TensorFlow's
libtensorflow_cc.so.2, any other CUDA library, a fatbin or a cubin.

Exit codes: 0 whatever the examination finds, which is advice; with --kernels 0 when all can be
started, 1 when some cannot or nothing of the library runs there, 2 for bad input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.cli.parser import JSON, CommandParser, add_output_format, chosen_output_format
from snugly.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from snugly.devices.device import Device
    from snugly.reporting.kernels import KernelReport

EXAMPLES = """\
examples:
  snugly doctor
  snugly doctor --output-format json > doctor.json
  snugly doctor --kernels libtensorflow_cc.so.2 --device jetson-nano
  snugly doctor --kernels libtensorflow_cc.so.2 --device jetson-nano --architecture sm_60
                                       as if the code for sm_60 had been compiled for the device
"""

_SHOWN = 20


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--kernels", metavar="LIB", help="list kernels that cannot be started")
    parser.add_argument("--device", metavar="NAME", help="with --kernels: on this device")
    parser.add_argument(
        "--architecture", metavar="SM", help="with --kernels: judge the code for sm_60, say"
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="with --kernels: threads a block (default: 1024, TensorFlow's for simple kernels)",
    )
    parser.add_argument(
        "--limit", type=int, metavar="N", help=f"with --kernels: show so many (default: {_SHOWN})"
    )
    add_output_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if arguments.kernels is not None:
        return _run_kernels(arguments)
    for option in ("device", "architecture", "threads", "limit"):
        if getattr(arguments, option) is not None:
            raise UsageError(
                f"--{option} goes with --kernels",
                hint="snugly doctor --kernels LIB --device jetson-nano",
            )
    from snugly.devices.examination import examine
    from snugly.reporting import doctor as report
    from snugly.reporting.json import print_json
    from snugly.reporting.terminal import show

    examination = examine()
    if chosen_output_format(arguments) == JSON:
        print_json(report.doctor_data(examination))
    else:
        show(report.draw_doctor(examination))
    return 0


def _run_kernels(arguments: argparse.Namespace) -> int:
    from snugly.reporting.json import print_json
    from snugly.reporting.kernels import draw_kernels, kernels_data
    from snugly.reporting.terminal import show

    report = _examine_library(arguments, _device(arguments.device))
    if chosen_output_format(arguments) == JSON:
        print_json(kernels_data(report))
    else:
        show(draw_kernels(report))
    return 1 if report.found else 0


def _examine_library(arguments: argparse.Namespace, device: Device) -> KernelReport:
    from pathlib import Path

    from snugly.devices.cuobjdump import architecture_of_cubin, demangled, resource_usage
    from snugly.devices.kernel_listing import (
        parse_architecture,
        read_listing,
        refused_kernels,
    )
    from snugly.devices.kernels import LARGEST_BLOCK
    from snugly.reporting.kernels import KernelReport, counting

    threads = LARGEST_BLOCK if arguments.threads is None else arguments.threads
    limit = _SHOWN if arguments.limit is None else arguments.limit
    if not 1 <= threads <= LARGEST_BLOCK:
        raise UsageError(f"--threads {threads}: a block has 1 to {LARGEST_BLOCK:,} threads")
    if limit < 0:
        raise UsageError("--limit cannot be negative", hint="--limit 50")
    if arguments.architecture is not None:
        wanted = parse_architecture(arguments.architecture)
    else:
        assert device.compute_capability is not None
        wanted = device.compute_capability
    path = Path(arguments.kernels)
    with resource_usage(path) as lines, counting() as advance:
        listing = read_listing(lines, wanted, architecture_of_cubin(path), advance)
    refused = refused_kernels(listing, device, threads)
    names = demangled([one.kernel.name for one in refused[:limit]])
    return KernelReport(arguments.kernels, device, wanted, threads, listing, refused, names)


def _device(name: str | None) -> Device:
    from snugly.cli.devices import visible
    from snugly.config import load_settings
    from snugly.devices import find_device

    chosen = name or load_settings().device
    if chosen is None:
        raise UsageError(
            "--kernels needs the device on which they are to be started",
            hint="add --device jetson-nano; `snugly devices` lists all names",
        )
    device = visible(chosen) or find_device(chosen)
    if device.compute_capability is None:
        raise UsageError(
            f"{device.name} has no GPU that runs CUDA kernels",
            hint="`snugly devices` lists those that have",
        )
    return device
