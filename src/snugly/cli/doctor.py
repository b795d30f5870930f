"""Look at TensorFlow's build and settings, this machine's limits, and known hazards.

Nothing is changed and TensorFlow is not imported. Put the output into bug reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.cli.parser import JSON, CommandParser, add_output_format, chosen_output_format

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
examples:
  snugly doctor
  snugly doctor --output-format json > doctor.json
"""


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    add_output_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command. What it finds is advice, so the exit code is 0 whatever it finds."""
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
