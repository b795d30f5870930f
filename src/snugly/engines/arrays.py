"""Dask arrays: stored into a file by the workers that compute them, and made of tasks' results."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.errors import InputError
from snugly.raw_blocks import write_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.engines.engine import Engine


def store(engine: Engine, array: Any, path: str, place: int) -> None:
    """Compute a Dask array into a file that all workers see, chunk by chunk.

    Args:
        engine: Whose workers compute it.
        array: The Dask array.
        path: A file that is as long as it will be.
        place: Where in the file the numbers begin, in the order of C.
    """
    from dask.array import store as dask_store

    target = _Target(path, place, array.shape, array.dtype)
    client = getattr(engine, "client", None)
    if client is None:
        dask_store(array, target, lock=False, compute=True)
        return
    stored = dask_store(array, target, lock=False, compute=False, return_stored=False)
    try:
        client.compute(stored).result()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}", code="SNG505") from error


def shared(engine: Engine, content: Any) -> Any:
    """Something that many tasks use, sent to every worker once; it lives as long as they do."""
    client = getattr(engine, "client", None)
    if client is not None:
        return client.scatter(content, broadcast=True, hash=False)
    from dask.delayed import delayed

    return delayed(content, traverse=False, pure=False)


def parts_of(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[np.dtype[Any]],
) -> list[Any]:
    """Lazy arrays for the results of one task, which gives a list of them."""
    from dask.array import from_delayed
    from dask.delayed import delayed

    found = delayed(function, pure=False, nout=len(shapes), traverse=False)(*arguments)
    return [
        from_delayed(part, shape, dtype)
        for part, shape, dtype in zip(found, shapes, dtypes, strict=True)
    ]


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A lazy array of zeros, in one chunk."""
    from dask.array import zeros as dask_zeros

    return dask_zeros(shape, dtype=dtype, chunks=shape)


def joined(grid: np.ndarray, axes: Sequence[int]) -> Any:
    """Blocks that lie in a grid, put together: the grid's axes are these axes of the result."""
    from dask.array import concatenate

    found: Any = grid
    for axis in reversed(axes):
        rows = found.reshape(-1, found.shape[-1])
        merged = np.empty(len(rows), object)
        for number, row in enumerate(rows):
            merged[number] = concatenate(list(row), axis=axis) if len(row) > 1 else row[0]
        found = merged.reshape(found.shape[:-1])
    return found.item() if isinstance(found, np.ndarray) else found


class _Target:
    """Takes chunks and writes each where it belongs."""

    def __init__(self, path: str, place: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._path, self._place = path, place
        self.shape, self.dtype = shape, dtype

    def __setitem__(self, where: tuple[slice, ...], chunk: np.ndarray) -> None:
        starts = [part.start or 0 for part in where]
        steps = np.cumprod([1, *self.shape[:0:-1]])[::-1] * self.dtype.itemsize
        lines = np.ascontiguousarray(chunk, self.dtype)
        file = os.open(self._path, os.O_WRONLY)
        try:
            for place in np.ndindex(*chunk.shape[:-1]):
                offset = starts[-1] * self.dtype.itemsize + sum(
                    (start + inside) * int(step)
                    for start, inside, step in zip(starts, place, steps, strict=False)
                )
                write_at(file, lines[place], self._place + offset)
        finally:
            os.close(file)
