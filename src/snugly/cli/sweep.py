"""Say which models, with which batch sizes, fit which devices: many predictions, as one table.

MODEL is what `snugly predict` takes: a file (model.keras, model.tflite, a SavedModel folder) or
`module:name` or `script.py:name`. Each step is predicted once for all devices of a kind, and judged
against what each of them offers. What is wrong with one model is told in its own rows; the others
are predicted. Nothing is run but the code that builds the models.

Exit codes: 0 all fit, or no budget was given; 1 some do not fit, or may not; 2 bad input, of the
command or of some rows, which the table tells.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from snugly.cli.outputs import refuse_place, write_output
from snugly.cli.parser import (
    JSON,
    CommandParser,
    add_output_format,
    chosen_output_format,
    dimension,
)
from snugly.config import load_settings
from snugly.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from snugly.sweeping import Sweep

EXAMPLES = """\
examples:
  snugly sweep small.keras large.keras --batch-size 8 16 32 --device t4 a100-40gb
  snugly sweep train.py:model --train --batch-size 8 16 32 --device jetson-nano t4 --largest
  snugly sweep train.py:model --train --memory 4GiB 8GiB --largest
  snugly sweep person.tflite keyword.tflite --device esp32-s3 rp2040 stm32f746
  snugly sweep *.keras --batch-size 1 --device raspberry-pi-4-4gb -o table.csv
  snugly sweep /shared/*.keras --batch-size 32 --device t4 --cluster tcp://scheduler:8786

`snugly devices` lists the names for --device. Models come first.
"""

RUNTIMES: Final = ("tensorflow", "xla", "litert", "xnnpack", "micro")
_OUTPUT: Final = "table.csv"  # as hints show it
_NOT_EVEN_ONE: Final = "SNG539"
"""Not even one example fits: an answer, not an error of the input."""


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "models", metavar="MODEL", nargs="+", help="a file, module:name or script.py:name"
    )
    parser.add_argument(
        "--batch-size",
        dest="batch_sizes",
        nargs="+",
        type=_count,
        metavar="N",
        help="examples in one step, one or many",
    )
    parser.add_argument("--train", action="store_true", help="predict training steps")
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument(
        "--device", dest="devices", nargs="+", metavar="NAME", help="what these offer are budgets"
    )
    budget.add_argument("--memory", nargs="+", metavar="SIZE", help="budgets: 4GiB, 512MiB, …")
    parser.add_argument(
        "--largest",
        action="store_true",
        help="also the largest batch that fits, for each model and budget",
    )
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="predict on a Dask cluster: tcp://scheduler:8786"
    )
    parser.add_argument(
        "--runtime",
        choices=RUNTIMES,
        default=None,
        help="tensorflow (default) or xla; of .tflite files litert, xnnpack or micro",
    )
    parser.add_argument(
        "--dimension",
        dest="dimensions",
        action="append",
        type=dimension,
        default=[],
        metavar="NAME=N",
        help="the size of a dimension the programs leave open; may be repeated",
    )
    parser.add_argument(
        "--allow-code", action="store_true", help="let model files run code they carry"
    )
    parser.add_argument(
        "-o", "--csv", metavar="TABLE.csv", help="also write the rows for a spreadsheet"
    )
    add_output_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from snugly.reporting.json import print_json
    from snugly.reporting.sweep import draw_sweep, sweep_csv, sweep_data
    from snugly.reporting.terminal import show

    # This process must not take all of a GPU to itself, as TensorFlow does unless told otherwise.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    refuse_place(arguments.csv, _OUTPUT)
    table = _sweep(arguments)
    if chosen_output_format(arguments) == JSON:
        print_json(sweep_data(table))
    else:
        show(draw_sweep(table))
    if arguments.csv is not None:
        # Written after the report was printed, which is not lost if the disk is full.
        write_output(arguments.csv, sweep_csv(table).encode(), _OUTPUT)
        print(f"written: {arguments.csv}", file=sys.stderr)
    return exit_code(table)


def exit_code(table: Sweep) -> int:
    """The worst of all cells: 2 where one has no answer, 1 where one does not surely fit."""
    codes = {error.code for error in table.errors}
    if codes - {_NOT_EVEN_ONE}:
        return 2
    is_over = any(row.verdict not in {"fits", None} for row in table.rows)
    return 1 if is_over or codes else 0


def _sweep(arguments: argparse.Namespace) -> Sweep:
    import snugly
    from snugly.sweeping.targets import targets_of

    memory, devices = _chosen_budgets(arguments)
    targets_of(devices, memory)  # refuses bad budgets before a cluster is looked for
    with ExitStack() as stack:
        engine = None
        if arguments.cluster is not None:
            engine = stack.enter_context(snugly.engines.dask(arguments.cluster))
        return snugly.sweep(
            arguments.models,
            batch_sizes=arguments.batch_sizes,
            devices=devices,
            memory=memory,
            training=arguments.train,
            largest=arguments.largest,
            runtime=arguments.runtime,
            dimensions=dict(arguments.dimensions),
            allow_code=arguments.allow_code,
            engine=engine,
        )


def _chosen_budgets(arguments: argparse.Namespace) -> tuple[Any, Any]:
    """The budgets of the command line, else those of the settings."""
    if arguments.memory is not None or arguments.devices is not None:
        return arguments.memory, arguments.devices
    settings = load_settings()
    return settings.memory, settings.device


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise UsageError(
            f"--batch-size must be whole numbers, not {text[:80]!r}",
            hint="name the models first: snugly sweep model.keras --batch-size 8 16 32",
        ) from None
    if number < 1:
        raise UsageError(
            f"--batch-size must be at least 1, not {number}", hint="write --batch-size 8 16 32"
        )
    return number
