"""Make a program need less memory, and say what each change saves and how safe it is.

PROGRAM is a model.tflite, a pipeline.config of the Object Detection API, or a compiled Keras model:
`script.py:name`, `module:name` or model.keras, whose plan for training is shown. With -o OUT.tflite
or a microcontroller, a model or SavedModel folder is converted to a .tflite first. Only what leaves
the results as they are is done, unless --allow permits more. What is written is predicted again and
checked from scratch first.

Exit codes: 0 it fits (or no budget was given); 1 it does not fit, and nothing is written unless
--best-effort; 2 bad input.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snugly.cli.outputs import refuse_place, write_output
from snugly.cli.parser import JSON, CommandParser, add_output_format, chosen_output_format
from snugly.config import load_settings
from snugly.errors import InputError, UsageError
from snugly.planning.safety import SAFETIES

if TYPE_CHECKING:
    import argparse

    from snugly.lite import LiteShrunk

EXAMPLES = """\
examples:
  snugly shrink model.tflite --memory 64KiB -o small.tflite
  snugly shrink model.tflite --device esp32-s3 -o small.tflite --emit-header small.h
  snugly shrink model.tflite -o small.tflite                 as small as can be
  snugly shrink model.tflite --memory 64KiB --kernels any -o small.tflite
  snugly shrink model.tflite --memory 64KiB --allow changes-training --samples inputs.npy
  snugly shrink model.keras --device esp32-s3 --allow changes-training -o model.tflite
  snugly shrink pipeline.config --host-memory 16GiB -o smaller.config
  snugly shrink train.py:model --memory 4GiB --batch-size 64
"""

_OUTPUT: Final = "small.tflite"  # as hints show it
RUNTIMES: Final = ("tensorflow", "xla", "litert", "xnnpack", "micro")


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "program", metavar="PROGRAM", help="model.tflite, pipeline.config, script.py:model"
    )
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--memory", metavar="SIZE", help="the budget: 64KiB, 4GiB, …")
    budget.add_argument("--device", metavar="NAME", help="what this device offers is the budget")
    parser.add_argument(
        "--host-memory", metavar="SIZE", help="of a pipeline.config: what the host offers"
    )
    parser.add_argument(
        "--runtime",
        choices=RUNTIMES,
        default=None,
        help="of a .tflite file: micro (default), litert or xnnpack",
    )
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help="of a model: what it is to be trained with"
    )
    parser.add_argument(
        "--allow-code", action="store_true", help="let a .keras file run code that it carries"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="where to write; else only shown")
    parser.add_argument(
        "--allow",
        choices=SAFETIES,
        default=SAFETIES[0],
        help="the most that a change may do (default: same-result)",
    )
    parser.add_argument(
        "--best-effort",
        action="store_true",
        help="write the smallest that was found even if it does not fit; the exit code stays 1",
    )
    parser.add_argument(
        "--kernels",
        choices=("reference", "any"),
        default="reference",
        help="what runs a .tflite: TFLite Micro's reference kernels, of which overlaps are proven,"
        " or any (CMSIS-NN, ESP-NN, …), with no overlaps",
    )
    parser.add_argument(
        "--emit-header", metavar="FILE.h", help="also write arena size and offsets for C++"
    )
    parser.add_argument(
        "--samples",
        metavar="FILE",
        help="of a .tflite, with --allow changes-training: inputs (.npy or .npz) to quantise by",
    )
    add_output_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    memory, device = _chosen_budget(arguments)
    for place in (arguments.output, arguments.emit_header):
        refuse_place(place, _OUTPUT, arguments.program)
    if None is not arguments.output == arguments.emit_header:
        raise UsageError(
            "the model and the header cannot be one file",
            hint="write -o small.tflite --emit-header small.h",
        )
    suffix = Path(arguments.program).suffix.lower()
    if suffix == ".tflite" or _is_for_lite(arguments, device):
        return _shrink_tflite(arguments, memory, device)
    if arguments.samples is not None:
        raise UsageError("--samples is for .tflite files", hint="leave it out")
    if arguments.emit_header is not None:
        raise UsageError("--emit-header is for .tflite files", hint="leave it out")
    if suffix == ".config":
        return _shrink_config(arguments, memory, device)
    return _shrink_program(arguments, memory, device)


def _is_for_lite(arguments: argparse.Namespace, device: str | None) -> bool:
    """Whether a program is to become a .tflite: by where it is written to, or where it runs."""
    from snugly.devices import find_device
    from snugly.lite.converting import is_convertible
    from snugly.predicting.lite import LITE_RUNTIMES

    if not is_convertible(arguments.program):
        return False
    if Path(arguments.output or "").suffix.lower() == ".tflite":
        return True
    if arguments.output is not None:
        return False
    if arguments.runtime in LITE_RUNTIMES:
        return True
    if device is None or device == "host" or device.startswith("gpu:"):
        return False
    return find_device(device).kind == "microcontroller"


def _shrink_tflite(arguments: argparse.Namespace, memory: Any, device: str | None) -> int:
    from snugly import lite
    from snugly.reporting.json import print_json
    from snugly.reporting.shrink import draw_shrink, shrink_data
    from snugly.reporting.terminal import show

    if arguments.host_memory is not None:
        raise UsageError("--host-memory is for pipeline.config", hint="give --memory 64KiB")
    if arguments.samples is not None and arguments.allow != SAFETIES[-1]:
        raise UsageError(
            "--samples are for quantising, which changes results",
            hint=f"permit it with --allow {SAFETIES[-1]}, or leave --samples out",
        )
    if arguments.emit_header is not None and arguments.runtime not in {None, "micro"}:
        raise InputError(f"{arguments.runtime} has no arena that is laid out before", code="SNG569")
    shrunk = lite.shrink(
        arguments.program,
        memory,
        arguments.runtime,
        arguments.allow,
        device=device,
        kernels=arguments.kernels,
        samples=arguments.samples,
        allow_code=arguments.allow_code,
    )
    if shrunk.refusal is not None:
        raise InputError(
            f"the interpreter of {shrunk.after.runtime} does not run the model as it was"
            f" converted: {shrunk.refusal}",
            code="SNG573",
            hint="give --runtime litert if it is not for a microcontroller; else replace the"
            " layers that the interpreter names",
        )
    writes = shrunk.fits or arguments.best_effort
    if writes and arguments.output is not None:
        write_output(arguments.output, shrunk.data, _OUTPUT)
    if writes and arguments.emit_header is not None:
        name = Path(arguments.output or arguments.program).name
        arena = None if device is None else int(shrunk.after.arena)
        write_output(
            arguments.emit_header,
            lite.header_text(shrunk.data, name, arena=arena).encode(),
            _OUTPUT,
        )
    if chosen_output_format(arguments) == JSON:
        data = shrink_data(shrunk, arguments.output if writes else None)
        print_json({**data, **_measured_data(shrunk)})
    else:
        if shrunk.measured is not None:
            notes = (*shrunk.notes, shrunk.measured.sentence())
            shrunk = replace(shrunk, notes=notes)
        show(draw_shrink(shrunk))
    _say_written(arguments, writes=writes)
    return 0 if shrunk.fits else 1


def _measured_data(shrunk: LiteShrunk) -> dict[str, Any]:
    """What real interpreters gave: how outputs changed, and what they took."""
    accuracy = None
    if shrunk.accuracy is not None:
        accuracy = {**asdict(shrunk.accuracy), "provenance": "measured"}
        for row, output in zip(accuracy["outputs"], shrunk.accuracy.outputs, strict=True):
            row["relative"] = output.relative
    measured = None
    if shrunk.measured is not None:
        measured = {**asdict(shrunk.measured), "provenance": "measured"}
    return {"accuracy": accuracy, "measured": measured}


def _shrink_config(arguments: argparse.Namespace, memory: Any, device: str | None) -> int:
    from snugly.devices import budget_for
    from snugly.reporting.json import print_json
    from snugly.reporting.shrink_config import draw_shrunk_config, shrunk_config_data
    from snugly.reporting.terminal import show
    from snugly.training.detection import shrink_pipeline_config

    if arguments.runtime not in {None, "tensorflow"}:
        raise InputError(
            f"the runtime {arguments.runtime} does not train detection models", code="SNG564"
        )
    budget = budget_for(memory, device)
    shrunk = shrink_pipeline_config(
        arguments.program,
        None if budget is None else budget.bytes,
        arguments.allow,
        host_memory=arguments.host_memory,
        best_effort=True,  # what was found is shown in any case; whether it is written is ours
    )
    writes = shrunk.fits or arguments.best_effort
    if writes and arguments.output is not None:
        write_output(arguments.output, shrunk.text.encode(), _OUTPUT)
    if chosen_output_format(arguments) == JSON:
        print_json(shrunk_config_data(shrunk, arguments.output if writes else None))
    else:
        show(draw_shrunk_config(shrunk))
    _say_written(arguments, writes=writes)
    return 0 if shrunk.fits else 1


def _shrink_program(arguments: argparse.Namespace, memory: Any, device: str | None) -> int:
    """A model that is trained: the plan is shown; `snugly.shrink` carries it out in the script."""
    from snugly.errors import MemoryLimitExceeded
    from snugly.readers.read import load_model
    from snugly.reporting.json import print_json
    from snugly.reporting.shrink_model import draw_shrunk_model, shrunk_model_data
    from snugly.reporting.terminal import show
    from snugly.training.shrinking import shrink

    if arguments.output is not None:
        raise UsageError(
            "what a model recomputes is not part of any file it is saved to",
            hint="leave -o out, and call `snugly.shrink(model, …)` where the model is trained",
        )
    if arguments.runtime not in {None, "tensorflow"}:
        raise InputError(f"the runtime {arguments.runtime} does not train models", code="SNG564")
    model = load_model(arguments.program, allow_code=arguments.allow_code)
    try:
        shrunk = shrink(
            model,
            memory=memory,
            device=device,
            batch_size=arguments.batch_size,
            allow=arguments.allow,
        )
    except MemoryLimitExceeded as refusal:
        if chosen_output_format(arguments) == JSON:
            print_json({"fits": False, "code": refusal.code, "message": refusal.message})
        print(refusal.render(), file=sys.stderr)
        return 1
    if chosen_output_format(arguments) == JSON:
        print_json(shrunk_model_data(shrunk))
    else:
        show(draw_shrunk_model(shrunk))
    return 0


def _chosen_budget(arguments: argparse.Namespace) -> tuple[Any, str | None]:
    """The budget of the command line, else that of the settings."""
    if arguments.memory is not None or arguments.device is not None:
        return arguments.memory, arguments.device
    if arguments.host_memory is not None:
        return None, None
    settings = load_settings()
    return settings.memory, settings.device


def _say_written(arguments: argparse.Namespace, *, writes: bool) -> None:
    said = "written" if writes else "not written"
    for place in (arguments.output, arguments.emit_header):
        if place is not None:
            print(f"{said}: {place}", file=sys.stderr)
