"""What workers do for one large determinant: bring a panel up to date, factor it, leave it for all.

A panel stays in its worker's memory from one task to the next; Dask is told its size and asks for
the same worker again. Nothing depends on that: a worker that has not got it reads the columns anew
and repeats what was done, from the panels that lie finished on the shelf. So a worker may die at
any moment, and a task may run twice.
"""

from __future__ import annotations

import os
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.errors import InputError
from snugly.linalg import blocked
from snugly.linalg.certainty import Probes
from snugly.linalg.lapack import blas_threads, lapack_for
from snugly.linalg.scan import Scales, take_out
from snugly.linalg.shelf import Head, Shelf, order_of_reading
from snugly.linalg.streaming import stream

if TYPE_CHECKING:
    from snugly.linalg.sources import Source


@dataclass(frozen=True, slots=True)
class Job:
    """One matrix to be factored, as every worker needs to know it."""

    source: Source
    index: int
    shelf: Shelf
    threads: int = 1
    """Threads that BLAS may use in each worker."""


@dataclass(frozen=True, slots=True)
class Held:
    """Says that a panel is in this worker's memory; its size is the panel's, for Dask to know."""

    number: int
    bytes: int

    def __sizeof__(self) -> int:
        return self.bytes


@dataclass(frozen=True, slots=True)
class Finished:
    """What the one who gathers the determinant needs of a panel."""

    number: int
    pivots: np.ndarray
    diagonal: np.ndarray
    written: int = 0


@dataclass(slots=True)
class _Panel:
    """A panel under way."""

    folder: str
    number: int
    memory: np.ndarray
    buffers: list[np.ndarray]
    applied: int = 0
    """How many earlier panels it is up to date with."""


_LOOKED_AT: Final = 4 << 20
"""Bytes that are read and looked at together."""

_heads: dict[tuple[str, int], Head] = {}
"""What finished panels told, read once in each process."""
_one_at_a_time = threading.Lock()
_kept: list[_Panel] = []
"""The panel of this process, at most one: a second one would not fit the memory it was given."""


def look(job: Job, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest and smallest number of each row in some columns.

    Raises:
        InputError: A number is not finite, or the matrix cannot be read.
    """
    source, scales = job.source, Scales(job.source, job.index)
    step = max(1, min(stop - start, _LOOKED_AT // (source.size * source.working.itemsize)))
    memory = np.empty((step, source.size), source.working).T
    with _one_at_a_time:
        for begin in range(start, stop, step):
            columns = memory[:, : min(step, stop - begin)]
            source.read(job.index, begin, begin + columns.shape[1], columns)
            scales.look(columns, begin)
    return scales.reach


def advance(job: Job, number: int, until: int) -> Held | Finished:
    """Bring a panel up to date with all panels before `until`; factor it, once that is itself."""
    shelf = job.shelf
    with _one_at_a_time, blas_threads(job.threads):
        try:
            if shelf.has(number):
                head = _head(shelf, number)
                return Finished(number, head.pivots, head.diagonal)
            panel = _taken(job, number)
            _update(job, panel, until)
            if until < number:
                _kept.append(panel)
                return Held(number, panel.memory.nbytes)
            found = _factored(job, panel)
            panel.number = -1
            _kept.append(panel)  # its memory, for the next one
            return found
        finally:
            shelf.close()


def error_bar(job: Job) -> float:
    """Go back through L once, for the error bar."""
    shelf, probes = job.shelf, _probes(job, job.shelf.count)
    swaps = [_head(shelf, number).pivots for number in range(shelf.count)]
    schedule = list(order_of_reading(shelf, 0, shelf.count))[::-1]
    with _one_at_a_time, blas_threads(job.threads):
        _kept.clear()
        try:
            for (number, block), rows in stream(shelf, schedule, lambda item: item[1], _pair(job)):
                start, _ = shelf.columns(number)
                probes.backward(rows, start, block.start)
                if block.start == start:
                    probes.swap_back(swaps[number], start)
        finally:
            shelf.close()
    return probes.error()


def forget(folder: str) -> int:
    """Free what this process kept for a job; the most memory it has ever held."""
    from snugly.devices.process import peak_resident_bytes

    with _one_at_a_time:
        _kept[:] = [panel for panel in _kept if panel.folder != folder]
        for key in [key for key in _heads if key[0] == folder]:
            del _heads[key]
    return peak_resident_bytes()


def let_go() -> None:
    """Free what a call kept here whose process was killed, unless a task is under way.

    Another call's panel may go with it; its next task reads the columns anew.
    """
    if _one_at_a_time.acquire(blocking=False):
        try:
            _kept.clear()
            _heads.clear()
        finally:
            _one_at_a_time.release()


def save_scales(shelf: Shelf, scale: np.ndarray, exponents: np.ndarray | None) -> None:
    """Leave the scales of the rows for the workers."""
    nothing = np.empty(0, np.int64)
    np.savez(_scales(shelf), scale=scale, exponents=nothing if exponents is None else exponents)


def _taken(job: Job, number: int) -> _Panel:
    """The panel as this process has it, or as the matrix has it."""
    shelf = job.shelf
    kept = _kept.pop() if _kept else None
    if kept is not None and (kept.folder, kept.number) == (shelf.folder, number):
        return kept
    if kept is None or kept.folder != shelf.folder:
        kept = None  # freed before as much is taken again
        memory = np.empty((min(shelf.width, shelf.size), shelf.size), shelf.dtype).T
        kept = _Panel(shelf.folder, number, memory, _pair(job))
    kept.number, kept.applied = number, 0
    columns = _columns(shelf, kept)
    job.source.read(job.index, *shelf.columns(number), columns)
    _, exponents = _load_scales(shelf)
    if len(exponents):
        take_out(columns, exponents)
    return kept


def _update(job: Job, panel: _Panel, until: int) -> None:
    """Apply earlier panels: their swaps, the solve with the diagonal block, the product."""
    shelf, lapack = job.shelf, lapack_for(job.shelf.dtype)
    columns = _columns(shelf, panel)
    schedule = list(order_of_reading(shelf, panel.applied, until))
    for (number, block), rows in stream(shelf, schedule, lambda item: item[1], panel.buffers):
        start, stop = shelf.columns(number)
        if block.start == start:
            lapack.swap_rows(columns[start:], _head(shelf, number).pivots)
        solved = min(block.start - start, stop - start)
        target = columns[block.start : block.start + block.height]
        lapack.subtract_product(target, rows[:, :solved], columns[start : start + solved])
        if solved < stop - start:
            triangle = rows[:, solved : solved + block.height]
            lapack.solve_triangular(triangle, target, lower=True, unit=True)
    panel.applied = max(panel.applied, until)


def _factored(job: Job, panel: _Panel) -> Finished:
    shelf = job.shelf
    columns = _columns(shelf, panel)
    start, stop = shelf.columns(panel.number)
    pivots = blocked.factor(lapack_for(shelf.dtype), columns[start:])
    diagonal = columns[start:].diagonal().copy()
    probes = _probes(job, panel.number)
    probes.swap(pivots, start)
    if diagonal.all():  # otherwise there is nothing to solve with, and no bar
        probes.take(columns[:stop], start)
    head = Head(pivots, diagonal, probes.values[start:stop])
    written = shelf.publish(panel.number, head, columns, panel.buffers[0])
    head = _head(shelf, panel.number)  # as it lies there: another worker may have been first
    return Finished(panel.number, head.pivots, head.diagonal, written)


def _probes(job: Job, until: int) -> Probes:
    """The right sides as they are once so many panels are finished."""
    shelf = job.shelf
    scale, _ = _load_scales(shelf)
    probes = Probes(scale, shelf.dtype)
    for number in range(until):
        start, stop = shelf.columns(number)
        head = _head(shelf, number)
        probes.values[start:stop] = head.values
        probes.swap(head.pivots, start)
    return probes


def _head(shelf: Shelf, number: int) -> Head:
    key = (shelf.folder, number)
    if key not in _heads:
        _heads[key] = shelf.head(number)
    return _heads[key]


def _columns(shelf: Shelf, panel: _Panel) -> np.ndarray:
    start, stop = shelf.columns(panel.number)
    return panel.memory[:, : stop - start]


def _pair(job: Job) -> list[np.ndarray]:
    shelf = job.shelf
    room = min(shelf.height, shelf.size) * min(shelf.width, shelf.size)
    return [np.empty(room, shelf.dtype) for _ in range(2)]


def _scales(shelf: Shelf) -> Path:
    return Path(shelf.folder) / "scales.npz"


def _load_scales(shelf: Shelf) -> tuple[np.ndarray, np.ndarray]:
    try:
        with np.load(_scales(shelf), allow_pickle=False) as found:
            return found["scale"], found["exponents"]
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(
            f"process {os.getpid()} does not find {_scales(shelf)}", code="SNG583"
        ) from error
