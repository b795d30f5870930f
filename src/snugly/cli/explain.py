"""Name the cause of a failure: from a log, an exit code, or what the kernel says of a process.

LOG is a file, or - for standard input: output of a terminal, a notebook, pytest, CI, Docker,
Slurm, dmesg. It may be of any size. A message code (SNG701) prints that code's page. Whether
memory is the cause at all is said first; what is not known is said to be unknown. TensorFlow is
not needed.

Exit codes: 0 nothing is known of it; 1 a cause was found; 2 bad input.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from snugly.cli.parser import JSON, TEXT, CommandParser, add_output_format, chosen_output_format
from snugly.errors import InputError, UsageError, suggest

if TYPE_CHECKING:
    import argparse

    from snugly.explaining.arena_lines import About
    from snugly.explaining.evidence import Readable
    from snugly.findings import Finding
    from snugly.recording.record import Record

EXAMPLES = """\
examples:
  snugly explain train.log
  python train.py 2>&1 | tee train.log; snugly explain train.log --exit-code ${PIPESTATUS[0]}
  sudo dmesg | snugly explain -
  snugly explain --exit-code 137                    what an exit code alone can say
  snugly explain train.log --pid-file train.pid     and what the kernel says of that process
  snugly explain train.log --record run.snugly      and what a recorded run held at its peak
  snugly explain serial.log --model model.tflite    and the arena that works for this model
  snugly explain SNG750                             the page of a message code
  snugly explain train.log --output-format json
"""

_CODE = re.compile(r"SNG\d{3}", re.IGNORECASE)
GITHUB, SARIF = "github", "sarif"


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("log", nargs="?", metavar="LOG", help="a log, -, or a code such as SNG701")
    parser.add_argument(
        "--exit-code", type=int, metavar="N", help="what the process ended with: 137, -9, 139, …"
    )
    parser.add_argument(
        "--pid-file", metavar="FILE", help="ask the kernel's log about the process named there"
    )
    parser.add_argument(
        "--record", metavar="RUN", help="a record of such a run: what it held is shown as well"
    )
    parser.add_argument(
        "--model", metavar="FILE", help="the .tflite model: names the arena that works for it"
    )
    parser.add_argument("--device", metavar="NAME", help="the microcontroller, with --model")
    add_output_format(parser, GITHUB, SARIF)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    form = chosen_output_format(arguments)
    if arguments.log is not None and _CODE.fullmatch(arguments.log):
        return _show_code(arguments.log.upper(), form)
    record = None if arguments.record is None else _load(arguments.record)
    findings = _find(arguments)
    _show(findings, form)
    if record is not None and form == TEXT:
        _show_record(record)
    return 1 if findings else 0


def _find(arguments: argparse.Namespace) -> list[Finding]:
    from snugly.explaining.explain import explain_file, explain_stream

    model = _about(arguments)
    if arguments.log is None and arguments.exit_code is None and arguments.pid_file is None:
        raise UsageError(
            "there is nothing to explain", hint="snugly explain LOG, or --exit-code N, or -"
        )
    about = b"" if arguments.pid_file is None else _from_kernel(Path(arguments.pid_file))
    if arguments.log is None:
        import io

        return explain_stream(io.BytesIO(about), arguments.exit_code, about=model)
    if arguments.log == "-":
        log = _after(sys.stdin.buffer, about)
        return explain_stream(log, arguments.exit_code, about=model)
    path = Path(arguments.log)
    if not about:
        return explain_file(path, arguments.exit_code, model)
    if not path.is_file():
        raise InputError(f"cannot read {path}: no such file", hint="give a log, or - for stdin")
    with path.open("rb") as file:
        return explain_stream(_after(file, about), arguments.exit_code, str(path), model)


def _about(arguments: argparse.Namespace) -> About | None:
    from snugly.explaining.arena_lines import About

    if arguments.model is None:
        if arguments.device is not None:
            raise UsageError(
                "--device says for which chip --model is predicted, and there is no --model",
                hint="snugly explain LOG --model model.tflite --device esp32-s3",
            )
        return None
    return About(arguments.model, arguments.device)


def _after(file: Readable, more: bytes) -> Readable:
    from snugly.explaining.evidence import Joined

    return Joined(file, more) if more else file


def _from_kernel(path: Path) -> bytes:
    from snugly.explaining.kernel_log import is_running, kernel_lines_about, read_pid_file

    pid = read_pid_file(path)
    if is_running(pid):
        raise InputError(
            f"process {pid} is still running", hint="there is nothing to explain before it ends"
        )
    lines = kernel_lines_about(pid)
    if lines is None:
        print(
            f"note: the kernel's log may not be read by this user, so it says nothing of {pid};"
            " `sudo dmesg | snugly explain -` reads it",
            file=sys.stderr,
        )
        return b""
    return "".join(f"{line}\n" for line in lines).encode()


def _show(findings: list[Finding], form: str) -> None:
    if form == JSON:
        from snugly.reporting.findings import findings_data
        from snugly.reporting.json import print_json

        print_json(findings_data(findings))
    elif form == GITHUB:
        from snugly.reporting.github import to_github

        if findings:
            print(to_github(findings))
    elif form == SARIF:
        from snugly.reporting.sarif import to_sarif

        print(to_sarif(findings))
    else:
        from snugly.reporting.findings import draw_findings
        from snugly.reporting.terminal import show

        show(draw_findings(findings))


def _load(path: str) -> Record:
    from snugly.recording.sources import load

    return load(path, None)


def _show_record(record: Record) -> None:
    from snugly.reporting.record import draw_record
    from snugly.reporting.terminal import show

    print("\nwhat the recorded run held:")
    show(draw_record(record, None))


def _show_code(code: str, form: str) -> int:
    from snugly.codes import REGISTRY
    from snugly.explaining.catalogue import catalogue
    from snugly.reporting.findings import code_data, draw_code
    from snugly.reporting.json import print_json
    from snugly.reporting.terminal import show

    entry = REGISTRY.get(code)
    if entry is None:
        near = suggest(code.lower(), [known.lower() for known in REGISTRY]).upper()
        raise InputError(
            f"there is no code {code}",
            hint=f"{near.replace('DID YOU MEAN', 'did you mean').replace(' OR ', ' or ')}"
            " the documentation lists all codes under Messages".strip(),
        )
    samples = [sample for one in catalogue() if one.code == code for sample in one.samples]
    if form == JSON:
        print_json(code_data(entry, samples))
    else:
        show(draw_code(entry, samples))
    return 0
