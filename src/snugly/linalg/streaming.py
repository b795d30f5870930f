"""Blocks of a scratch file, read one ahead by a thread while the one before is worked on."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

    from snugly.linalg.scratch import Scratch
    from snugly.linalg.shelf import Shelf

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Block:
    """Rows `start` to `start + height` of a panel of `width` columns, stored column by column."""

    place: int
    """Bytes from the start of the scratch file."""
    start: int
    height: int
    width: int

    def shape(self, buffer: np.ndarray) -> np.ndarray:
        """The beginning of a flat buffer as this block, its columns contiguous."""
        return buffer[: self.height * self.width].reshape(self.width, self.height).T


def stream(
    scratch: Scratch | Shelf,
    schedule: Sequence[Item],
    block_of: Callable[[Item], Block],
    buffers: Sequence[np.ndarray],
) -> Iterator[tuple[Item, np.ndarray]]:
    """Yield each item with its block, valid until the next one is asked for.

    Whoever stops half way, by an error or by Ctrl-C, leaves no thread behind: closing the generator
    ends it.
    """
    if not schedule:
        return
    free: queue.SimpleQueue[np.ndarray | None] = queue.SimpleQueue()
    full: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for buffer in buffers:
        free.put(buffer)

    def read_ahead() -> None:
        try:
            for item in schedule:
                buffer = free.get()
                if buffer is None:
                    return
                rows = block_of(item).shape(buffer)
                scratch.read(rows, block_of(item).place)
                full.put((item, rows, buffer))
        except BaseException as error:  # noqa: BLE001 - raised again where the block is waited for
            full.put(error)

    reader = threading.Thread(target=read_ahead, name="snugly-scratch", daemon=True)
    reader.start()
    try:
        for _ in schedule:
            got = full.get()
            if isinstance(got, BaseException):
                raise got
            item, rows, buffer = got
            yield item, rows
            free.put(buffer)
    finally:
        free.put(None)
        reader.join()


def cuts(start: int, width: int, size: int, height: int) -> Iterator[tuple[int, int]]:
    """Blocks of rows, cut so that none reaches across the end of the diagonal block."""
    for low, high in ((start, start + width), (start + width, size)):
        for begin in range(low, high, height):
            yield begin, min(begin + height, high)
