"""Install a Jupyter kernel that runs under Snugly's supervisor, and tells why it died.

Notebooks then offer "Python (Snugly)". Its magics are loaded, its memory is limited, and when it is
killed or crashes, the cell that ran shows the cause instead of "the kernel died". The kernel runs
in the environment of this Python.

Exit codes: 0 installed, 2 bad input or a place that cannot be written.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError, MissingDependencyError, UsageError
from snugly.units import Size

if TYPE_CHECKING:
    import argparse

    from snugly.cli.parser import CommandParser

EXAMPLES = """\
examples:
  snugly install-kernel                          limit: what is free when a kernel starts
  snugly install-kernel --memory 14GiB
  snugly install-kernel --sys-prefix --name snugly-small --memory 2GiB
  jupyter kernelspec remove snugly               take it away again
"""

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--memory", metavar="SIZE", help="the most a kernel may hold, e.g. 14GiB")
    parser.add_argument("--name", default="snugly", help="name of the kernelspec (default: snugly)")
    parser.add_argument("--display-name", metavar="TEXT", help="what notebooks show")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="for this user (the default)")
    place.add_argument("--sys-prefix", action="store_true", help="into this environment")
    place.add_argument("--prefix", metavar="FOLDER", help="below another folder")


def run(arguments: argparse.Namespace) -> int:
    """Install the kernelspec and say where."""
    if not _NAME.fullmatch(arguments.name):
        raise UsageError(
            f"{arguments.name!r} cannot name a kernel",
            hint="use letters, digits, '.', '-' and '_'",
        )
    memory = None if arguments.memory is None else Size(arguments.memory)
    if memory == 0:
        raise UsageError("--memory must be more than nothing", hint="for example --memory 4GiB")
    manager = _manager()
    prefix = sys.prefix if arguments.sys_prefix else arguments.prefix
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(kernelspec(memory, arguments.display_name), indent=1) + "\n"
        Path(folder, "kernel.json").write_text(text, encoding="utf-8")
        try:
            where = manager.install_kernel_spec(
                folder, arguments.name, user=prefix is None, prefix=prefix
            )
        except OSError as problem:
            raise InputError(
                f"cannot install the kernel: {problem.strerror or problem}",
                code="SNG606",
                hint="--user, --sys-prefix and --prefix choose another place",
            ) from problem
    print(f"installed {arguments.name} in {where}")
    print("next: choose it in a notebook; `jupyter kernelspec list` shows all")
    return 0


def kernelspec(memory: Size | None, display_name: str | None) -> dict[str, Any]:
    """What Jupyter reads: how to start the kernel."""
    limit = [] if memory is None else ["--memory", str(int(memory))]
    shown = display_name or ("Python (Snugly)" if memory is None else f"Python (Snugly, {memory})")
    return {
        "argv": [
            sys.executable, "-m", "snugly.integrations.kernel", *limit, "-f", "{connection_file}",
        ],
        "display_name": shown,
        "language": "python",
        # A signal would reach the kernel twice: from Jupyter, and passed on by the supervisor.
        "interrupt_mode": "message",
        "metadata": {"debugger": True},
    }  # fmt: skip


def _manager() -> Any:
    try:
        import ipykernel  # noqa: F401 - what the kernel needs, found before it is installed
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError as problem:
        raise MissingDependencyError(
            "a kernel needs ipykernel, which is not installed in this environment",
            code="SNG606",
            hint="pip install ipykernel",
        ) from problem
    return KernelSpecManager()
