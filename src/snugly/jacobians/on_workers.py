"""What workers do for a Jacobian: run the program they were sent, write lines where they belong.

Writing a line twice writes the same numbers, so a task may run again after its worker died.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.devices import heap
from snugly.engines import provided
from snugly.jacobians.shipping import Package, bound, unpack
from snugly.jacobians.streaming import Writer, summing
from snugly.jacobians.subject import tensorflow
from snugly.readers.host_memory import array_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.jacobians.pieces import Outline, Piece, SentPortion
    from snugly.jacobians.stores import Store


@dataclass(frozen=True, slots=True)
class Parcel:
    """All that a worker needs for one Jacobian; sent once."""

    name: str
    outline: Outline
    portions: tuple[SentPortion, ...]
    programs: tuple[Package, ...]
    leaves: tuple[np.ndarray, ...]
    batch: int
    whole: bool
    threads: int
    """What TensorFlow may use in each worker."""

    @property
    def bytes(self) -> int:
        """About what it takes; values that programs share count once."""
        held = {id(h.value): h.value.nbytes for p in self.programs for h in p.held}
        graphs = sum(len(program.graph) for program in self.programs)
        return sum(held.values()) + graphs + sum(leaf.nbytes for leaf in self.leaves)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a piece."""

    finite: bool
    bytes: int


class Running:
    """A parcel opened: programs that can be called, inputs as tensors."""

    def __init__(self, parcel: Parcel) -> None:
        tf = tensorflow()
        _limit(parcel.threads)  # a worker that came in place of another one was never made ready
        self.parcel = parcel
        variables: dict[int, Any] = {}
        self._programs = [bound(_program(p), p, variables) for p in parcel.programs]
        self._leaves = [tf.constant(leaf) for leaf in parcel.leaves]

    def lines(self, piece: Piece) -> Iterator[tuple[int, list[np.ndarray]]]:
        """The lines of a piece, a few at a time: the first one's number, and a part for each input.

        A part has the shape (lines, numbers), or (lines, examples, numbers).
        """
        tf = tensorflow()
        portion, program = self.parcel.portions[piece.portion], self._programs[piece.portion]
        batch = self.parcel.batch
        end = piece.example + batch
        inputs = [leaf[piece.example : end] for leaf in self._leaves] if batch else self._leaves
        for start in range(piece.first, piece.stop, portion.chunk):
            # The last chunk begins earlier rather than being smaller; what it repeats is left out.
            first = max(0, min(start, piece.stop - portion.chunk))
            found = program([*inputs, tf.constant(first)])
            stop = min(start + portion.chunk, piece.stop)
            yield start, [array_of(part)[start - first : stop - first] for part in found]


_KEPT: Final = 4
_LARGEST_KEPT: Final = 8 << 20
"""Programs up to so many bytes stay open for the next Jacobian of the same function."""

_one_at_a_time = threading.Lock()
_running: dict[str, Running] = {}
_programs: dict[str, Any] = {}
"""Programs without their values, by their digests; the one used last is the last. To open one and
have TensorFlow prepare it takes longer than many a Jacobian (a second for eight convolutions)."""


def ready(threads: int, roomy: int) -> tuple[int, int]:
    """Load TensorFlow with its share of threads; what the process then holds, and its machine has.

    A process that used TensorFlow before keeps the threads it has.

    Args:
        threads: TensorFlow's share.
        roomy: What the process may hold and still keep programs of earlier Jacobians open.
    """
    from snugly.devices import host_memory
    from snugly.devices.process import resident_bytes

    _limit(threads)
    _warm_up()
    _let_go()
    heap.give_back_unused()  # what earlier work left in the C library's hands can be used again
    if _programs and resident_bytes() > roomy:
        _programs.clear()
        gc.collect()
        heap.give_back_unused()
    return resident_bytes(), int(host_memory().bytes)


def write_piece(name: str, piece: Piece, store: Store) -> Written:
    """Compute a piece and write it into the store."""
    with _one_at_a_time:
        running = _opened(name, provided.get(name))
        parcel = running.parcel
        writer = Writer(parcel.outline, store, whole=parcel.whole)
        portion = parcel.portions[piece.portion]
        finite, written = True, 0
        with store.refusing():
            store.open()
        try:
            for first, parts in running.lines(piece):
                for across, values in enumerate(parts):
                    finite &= bool(np.isfinite(values.sum(dtype=summing(values))))
                    writer.write(portion, across, first, values, piece.example)
                    written += values.nbytes
            with store.refusing():
                store.sync()
        finally:
            store.close()
    return Written(finite, written)


def give_piece(parcel: Parcel, piece: Piece) -> list[np.ndarray]:
    """Compute a piece; a part for each input (each output, for columns)."""
    with _one_at_a_time:
        running = _opened(parcel.name, parcel)
        blocks = [parts for _, parts in running.lines(piece)]
        return [np.concatenate(each) for each in zip(*blocks, strict=True)]


def forget(name: str) -> None:
    """Free what was opened for a Jacobian, but for programs that the next one may use."""
    with _one_at_a_time:
        running = _running.pop(name, None)
        packages = [] if running is None else running.parcel.programs
        del running
        if any(package.digest not in _programs for package in packages):
            gc.collect()  # programs of TensorFlow refer to themselves
        heap.stop_reusing()


def _let_go() -> None:
    """Free the weights of the last program, unless it is at work: the next one puts its own there.

    They stay after a lazy Jacobian, which opens them again when it is asked once more, and after a
    call whose process was killed.
    """
    if _running and _one_at_a_time.acquire(blocking=False):
        try:
            _running.clear()
            gc.collect()  # programs of TensorFlow refer to themselves
        finally:
            _one_at_a_time.release()


def _limit(threads: int) -> None:
    """Give TensorFlow its share of the machine, if it has not begun to work already."""
    tf = tensorflow()
    heap.reuse_freed()
    with contextlib.suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        for device in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(device, True)


@cache
def _warm_up() -> None:
    """A first program: what TensorFlow takes once for all is part of what a process holds."""
    tf = tensorflow()
    tf.function(lambda x: x @ x)(tf.ones((8, 8)))


def _program(package: Package) -> Any:
    """A program, opened before or now."""
    program = _programs.pop(package.digest, None) or unpack(package)
    if len(package.graph) <= _LARGEST_KEPT:
        _programs[package.digest] = program
        if len(_programs) > _KEPT:
            del _programs[next(iter(_programs))]
            gc.collect()
    return program


def _opened(name: str, parcel: Parcel) -> Running:
    if name not in _running:
        _running.clear()  # one function at a time is what the memory was planned for
        _running[name] = Running(parcel)
    return _running[name]
