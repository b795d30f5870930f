"""Say whether a program fits the memory of a device, before it runs.

PROGRAM is a file (model.keras, model.tflite, pipeline.config, a SavedModel folder) or `module:name`
or `script.py:name`, where the name is a model, a function, or a builder without arguments.
Nothing is run but the code that builds the model; no tensor of the program is allocated.

Exit codes: 0 it fits, or no budget was given; 1 it does not fit, or may not; 2 bad input.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

    from snugly.predicting import Prediction

EXAMPLES = """\
examples:
  snugly predict train.py:model --train --batch-size 32 --device jetson-nano
  snugly predict package.models:build --batch-size 8 --memory 4GiB
  snugly predict model.keras --batch-size 1 --dimension sequence=512
  snugly predict saved_model/ --batch-size 1 --device host --output-format json
  snugly predict train.py:model --train --batch-size 32 --html page.html
  snugly predict model.tflite --runtime micro --device esp32-s3
  snugly predict pipeline.config --memory 8GiB
  snugly predict train.py:model --train --batch-size 256 --strategy mirrored:4 --device v100-16gb

`snugly devices` lists the names for --device.
"""

RUNTIMES = ("tensorflow", "xla", "litert", "xnnpack", "micro")


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("program", metavar="PROGRAM", help="a file, module:name or script.py:name")
    parser.add_argument("--batch-size", type=_count, metavar="N", help="examples in one step")
    parser.add_argument("--train", action="store_true", help="predict a training step")
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--memory", metavar="SIZE", help="the budget: 4GiB, 512MiB, 2 GB, …")
    budget.add_argument("--device", metavar="NAME", help="what this device offers is the budget")
    parser.add_argument(
        "--runtime",
        choices=RUNTIMES,
        default=None,
        help="tensorflow (default) or xla; of a .tflite file litert (default), xnnpack or micro",
    )
    parser.add_argument(
        "--dimension",
        dest="dimensions",
        action="append",
        type=dimension,
        default=[],
        metavar="NAME=N",
        help="the size of a dimension the program leaves open; may be repeated",
    )
    parser.add_argument(
        "--strategy",
        metavar="NAME:N",
        help="how training is spread: mirrored:4, multiworker:2x4 (workers, devices of each) or"
        " parameter-server:4x2 (workers, servers); --batch-size is then that of all replicas",
    )
    parser.add_argument(
        "--allow-code", action="store_true", help="let a model file run code it carries"
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="also write one offline page: memory in program order, blocks",
    )
    add_output_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    from snugly.devices import budget_for
    from snugly.predicting.strategies import strategy_from
    from snugly.reporting.json import print_json
    from snugly.reporting.prediction import draw_prediction, prediction_data
    from snugly.reporting.terminal import show

    # This process must not take all of a GPU to itself, as TensorFlow does unless told otherwise.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    memory, device = _chosen_budget(arguments)
    budget_for(memory, device)  # refuses a bad budget in milliseconds, before TensorFlow loads
    if Path(arguments.program).suffix.lower() == ".config":
        return _predict_config(arguments, memory, device)
    if arguments.strategy is not None:
        strategy_from(arguments.strategy)  # likewise
    if arguments.html is not None:
        _refuse_place(arguments.html)
    prediction = _predict(arguments, memory, device)
    if chosen_output_format(arguments) == JSON:
        print_json(prediction_data(prediction))
    else:
        show(draw_prediction(prediction))
    if arguments.html is not None:
        _write_page(prediction, arguments.html)
    return 0 if prediction.verdict in {"fits", None} else 1


def _predict_config(arguments: argparse.Namespace, memory: Any, device: Any) -> int:
    """A pipeline.config of the Object Detection API: it says itself how it trains."""
    from snugly.devices import budget_for
    from snugly.reporting.json import print_json
    from snugly.reporting.shrink_config import config_data, draw_config
    from snugly.reporting.terminal import show
    from snugly.training.detection import predict_pipeline_config

    given = {
        "--batch-size": arguments.batch_size,
        "--dimension": arguments.dimensions,
        "--html": arguments.html,
        "--strategy": arguments.strategy,
        "--runtime": arguments.runtime if arguments.runtime != "tensorflow" else None,
    }
    unused = [name for name, value in given.items() if value]
    if unused:
        raise UsageError(
            f"{unused[0]} does not go with a pipeline.config, which says itself how it trains",
            hint="leave it out, or change the file",
        )
    budget = budget_for(memory, device)
    prediction = predict_pipeline_config(
        arguments.program, memory=None if budget is None else budget.bytes
    )
    if chosen_output_format(arguments) == JSON:
        print_json(config_data(prediction))
    else:
        show(draw_config(prediction))
    return 0 if prediction.verdict in {"fits", None} else 1


def _predict(arguments: argparse.Namespace, memory: Any, device: Any) -> Prediction:
    import snugly

    return snugly.predict(
        arguments.program,
        batch_size=arguments.batch_size,
        training=arguments.train,
        memory=memory,
        device=device,
        runtime=arguments.runtime,
        dimensions=dict(arguments.dimensions),
        allow_code=arguments.allow_code,
        strategy=arguments.strategy,
    )


def _refuse_place(path: str) -> None:
    """Likewise a page that cannot be written is refused before the work is done."""
    from snugly.reporting.html import refuse_unwritable

    refuse_unwritable(path)


def _write_page(prediction: Prediction, path: str) -> None:
    """Written after the report was printed, which is not lost if the disk is full."""
    from snugly.reporting.html import page_of_prediction, write_page

    written = write_page(page_of_prediction(prediction), path)
    print(f"written: {written}", file=sys.stderr)


def _chosen_budget(arguments: argparse.Namespace) -> tuple[Any, str | None]:
    """The budget of the command line, else that of the settings."""
    if arguments.memory is not None or arguments.device is not None:
        return arguments.memory, arguments.device
    settings = load_settings()
    return settings.memory, settings.device


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise UsageError(
            f"--batch-size must be a whole number, not {text!r}", hint="write --batch-size 32"
        ) from None
    if number < 1:
        raise UsageError(
            f"--batch-size must be at least 1, not {number}", hint="write --batch-size 32"
        )
    return number
