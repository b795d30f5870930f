"""Blocks of numbers in files, by their place: written and read whole, wherever the system stops.

One call of the system may take less than it was given (2 GiB at most on Linux), so each is repeated
until nothing is left. No position is kept, so several threads may use one file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def bytes_of(block: np.ndarray) -> memoryview:
    """The bytes of a block that lies in one piece, in the order of C or Fortran."""
    return memoryview(block.reshape(-1, order="A").view("u1"))  # type: ignore[arg-type] # NumPy's types know no buffers


def write_at(file: int, block: np.ndarray, place: int) -> None:
    """Write a block to an open file, so many bytes from its start."""
    view = bytes_of(block)
    while view:
        written = os.pwrite(file, view, place)
        view, place = view[written:], place + written


def read_at(file: int, block: np.ndarray, place: int) -> None:
    """Fill a block from an open file, so many bytes from its start.

    Raises:
        EOFError: The file ends before that.
    """
    view = bytes_of(block)
    while view:
        got = os.preadv(file, [view], place)
        if got == 0:
            raise EOFError(f"the file ends {len(view)} bytes too early")
        view, place = view[got:], place + got
