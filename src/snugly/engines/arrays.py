"""Dask arrays: stored into a file by the workers that compute them, and made of tasks' results."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from snugly.errors import InputError
from snugly.raw_blocks import write_at
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.engines.cluster import DaskEngine
    from snugly.engines.engine import Engine


_SMALLER: Final = "cut it into smaller chunks: `a = a.rechunk('64 MiB')`"
_DIED: Final = frozenset({"SNG581", "SNG585"})
"""Workers died at a task, or all of them at once."""


def store(engine: Engine, array: Any, path: str, place: int) -> None:
    """Compute a Dask array into a file that all workers see, chunk by chunk.

    Args:
        engine: Whose workers compute it.
        array: The Dask array.
        path: A file that is as long as it will be.
        place: Where in the file the numbers begin, in the order of C.

    Raises:
        InputError: A chunk is larger than any worker's limit, or is not what the array says of it;
            or workers died of them.
    """
    from dask.array import store as dask_store

    target = _Target(path, place, array.shape, array.dtype)
    client = getattr(engine, "client", None)
    if client is None:
        dask_store(array, target, lock=False, compute=True)
        return
    _refuse_too_large(engine, array)
    stored = dask_store(array, target, lock=False, compute=False, return_stored=False)
    try:
        cast("DaskEngine", engine).result_of(client.compute(stored))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}", code="SNG505") from error
    except InputError as error:
        if error.code not in _DIED:
            raise
        raise InputError(
            f"{error.message}, while they computed the Dask array in chunks of"
            f" {_largest_chunk(array)}",
            code=error.code,
            hint=_SMALLER,
        ) from error


def _refuse_too_large(engine: Engine, array: Any) -> None:
    """Refuse chunks that no worker can hold: they would take one worker after the other down."""
    limits = [worker.memory_limit for worker in engine.workers()]
    offered = max((int(limit) for limit in limits if limit is not None), default=0)
    largest = _largest_chunk(array)
    if None not in limits and int(largest) > offered:
        raise InputError(
            f"the Dask array has a chunk of {largest}; no worker may hold more than"
            f" {Size(offered)}",
            code="SNG584",
            hint=_SMALLER,
        )


def _largest_chunk(array: Any) -> Size:
    """What its largest chunk takes, by what the array says."""
    return Size(math.prod(max(extents) for extents in array.chunks) * array.dtype.itemsize)


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

    def __setitem__(self, where: tuple[slice, ...], chunk: Any) -> None:
        self._check(where, chunk)
        starts = [part.start or 0 for part in where]
        steps = np.cumprod([1, *self.shape[:0:-1]])[::-1] * self.dtype.itemsize
        file = os.open(self._path, os.O_WRONLY)
        try:
            for place in np.ndindex(*chunk.shape[:-1]):
                offset = starts[-1] * self.dtype.itemsize + sum(
                    (start + inside) * int(step)
                    for start, inside, step in zip(starts, place, steps, strict=False)
                )
                # Line by line: a copy of a whole chunk may be more than the worker has left.
                line = np.ascontiguousarray(chunk[place], self.dtype)
                write_at(file, line, self._place + offset)
        finally:
            os.close(file)

    def _check(self, where: tuple[slice, ...], chunk: Any) -> None:
        """Refuse a chunk that is not what the array said: zeros or neighbours would be there."""
        said = tuple(
            len(range(*part.indices(extent)))
            for part, extent in zip(where, self.shape, strict=True)
        )
        place = f"[{', '.join(f'{part.start or 0}:{part.stop}' for part in where)}]"
        hint = "give `map_blocks` and `from_delayed` the shapes and types that really come"
        found = getattr(chunk, "shape", None)
        if not isinstance(chunk, np.ndarray) or found != said:
            raise InputError(
                f"the Dask array says that its chunk {place} has the shape {said}, but it is a"
                f" {type(chunk).__name__} of shape {found}",
                code="SNG501",
                hint=hint,
            )
        if not np.can_cast(chunk.dtype, self.dtype, "same_kind"):
            raise InputError(
                f"the Dask array says that its chunk {place} is {self.dtype.name}, but it is"
                f" {chunk.dtype.name}",
                code="SNG502",
                hint=hint,
            )
