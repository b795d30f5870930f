"""Loaded into a kernel of `snugly install-kernel`: the magics, and which cell runs.

The supervisor needs to know the cell to which it should tell of the kernel's end. If the notebook
was not listening then, the next kernel shows it with its first cell.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from snugly.integrations.kernel import NOTE, read_note, write_note


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython when the kernel starts."""
    from snugly.integrations.notebook import load

    load(shell)
    if NOTE not in os.environ:
        return
    path = Path(os.environ[NOTE])
    told = read_note(path).get("story")
    waiting = [told] if isinstance(told, str) else []

    def before() -> None:
        write_note(path, {"parent": shell.get_parent()})
        while waiting:
            text = waiting.pop()
            sys.stderr.write(f"The kernel before this one died.\n{text}\n")

    def after() -> None:
        path.unlink(missing_ok=True)

    shell.events.register("pre_run_cell", lambda *_: before())
    shell.events.register("post_run_cell", lambda *_: after())
