"""The command line: one file a command, and `main`, which alone turns errors into exit codes.

Exit codes: 0 it fits, or nothing was found; 1 it does not fit, or something was found; 2 the
command or its input cannot be used; 130 interrupted.
"""

from snugly.cli.main import main

__all__ = ["main"]
