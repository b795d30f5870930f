"""List the devices Snugly knows, or show all about one of them.

NAME is a name of the catalogue, `host` (this machine and its container), or `gpu:0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snugly.cli.parser import JSON, CommandParser, add_output_format, chosen_output_format

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
examples:
  snugly devices                                 all devices, and what TensorFlow can have of each
  snugly devices jetson-nano                     one device, with the source of every figure
  snugly devices host                            this machine: memory, container limit, GPUs
  snugly devices h200 --output-format json
"""


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="show this device only")
    add_output_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from snugly.devices import catalogue, detect_host, find_device
    from snugly.reporting import devices as report
    from snugly.reporting.json import print_json
    from snugly.reporting.terminal import show

    as_json = chosen_output_format(arguments) == JSON
    data: dict[str, Any]
    if arguments.name is None:
        known = list(catalogue().values())
        data, drawing = report.list_data(known), report.draw_list(known)
    elif arguments.name.lower() == "host":
        host = detect_host()
        data, drawing = report.host_data(host), report.draw_host(host)
    else:
        device = visible(arguments.name) or find_device(arguments.name)
        data, drawing = report.device_data(device), report.draw_device(device)
    if as_json:
        print_json(data)
    else:
        show(drawing)
    return 0


def visible(name: str) -> Any:
    """A GPU of this machine by its number, if that is what was asked for."""
    if not name.lower().startswith("gpu:"):
        return None
    from snugly.devices.choice import visible_gpu

    return visible_gpu(name.lower())
