"""A Jacobian in memory: one result, allocated once and filled in place.

Rows are written by a compiled loop that TensorFlow runs where it runs the function, so on a GPU the
result stays there. Columns lie apart in memory; they are written by NumPy into the same buffer, in
host memory.
"""

from __future__ import annotations

import ctypes
import math
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.jacobians.lines import Lines, result_shape
from snugly.jacobians.subject import Leaf, numpy_dtype, tensorflow
from snugly.readers.host_memory import array_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.jacobians.known import Known
    from snugly.jacobians.plan import Plan, Portion

_PATIENCE: Final = 0.5
"""Seconds between two looks at the keyboard and two steps of the bar."""


class Filling:
    """One computation into memory."""

    def __init__(self, known: Known, plan: Plan, *, whole: bool, narrow: Any = None) -> None:
        self._known, self._plan, self._whole, self._narrow = known, plan, whole, narrow
        self._done = 0
        self.suspect = False
        """Whether some entry may not be finite."""

    def run(self, leaves: Sequence[Any], progress: Callable[[float], None]) -> list[list[Any]]:
        """The Jacobian as a tensor for each output and each input."""
        if self._plan.mode == "reverse":
            return [self._rows(portion, leaves, progress) for portion in self._plan.portions]
        return self._columns(leaves, progress)

    def _rows(
        self, portion: Portion, leaves: Sequence[Any], progress: Callable[[float], None]
    ) -> list[Any]:
        tf = tensorflow()
        lines = portion.lines
        results = []
        for leaf in lines.across:
            shape = result_shape(lines, leaf, whole=self._whole)
            dtype = self._narrow or leaf.dtype
            zeros = bool(lines.examples) and self._whole
            results.append(tf.raw_ops.Empty(shape=shape, dtype=dtype, init=zeros))
        program = self._known.of_batch(self._plan.batch).filling(
            lines,
            portion.chunk,
            vectorised=portion.vectorised,
            whole=self._whole,
            narrow=self._narrow,
        )
        for start in self._plan.starts():
            batch = part_of(leaves, start, self._plan.batch)
            self._fill(program, portion, batch, results, start, progress)
        subject = self._known.subject
        output = subject.outputs[lines.leaf]
        return [
            tf.reshape(result, self._shape(output, leaf, lines))
            for result, leaf in zip(results, subject.sources, strict=True)
        ]

    def _fill(  # noqa: PLR0913, PLR0917 - what a loop is made of
        self,
        program: Any,
        portion: Portion,
        leaves: Sequence[Any],
        results: Sequence[Any],
        example: int,
        progress: Callable[[float], None],
    ) -> None:
        tf = tensorflow()
        first, turns = 0, portion.turns
        pace = self._known.pace.get((portion.lines, portion.chunk), _PATIENCE)
        at_once = turns if self._known.subject.random else self._turns(pace, turns)
        while first < turns:
            begun = time.monotonic()
            last = min(first + at_once, turns)
            numbers = (tf.constant(number) for number in (first, last, example))
            total = program(list(leaves), list(results), *numbers)
            self.suspect |= not bool(tf.math.is_finite(total))
            self._advance((last - first) * portion.chunk, progress)
            first = last
            pace = (time.monotonic() - begun) / at_once
            # Each pass runs the forward pass anew: as few of them as a person's patience allows.
            at_once = self._turns(pace, at_once * 16)
        self._known.pace[portion.lines, portion.chunk] = pace

    @staticmethod
    def _turns(pace: float, most: int) -> int:
        """How many turns go into one pass, where each takes so many seconds."""
        return max(1, min(most, int(_PATIENCE / max(pace, 1e-6))))

    def _columns(self, leaves: Sequence[Any], progress: Callable[[float], None]) -> list[list[Any]]:
        tf = tensorflow()
        subject = self._known.subject
        found: list[list[Any]] = [[] for _ in subject.outputs]
        for portion in self._plan.portions:
            lines, source = portion.lines, portion.lines.along
            views = []
            for output, results in zip(subject.outputs, found, strict=True):
                dtype = self._narrow or source.dtype
                shape = self._shape(output, source, lines)
                zeros = bool(lines.examples) and self._whole
                with tf.device("CPU:0"):
                    result = tf.raw_ops.Empty(shape=shape, dtype=dtype, init=zeros)
                results.append(result)
                views.append(writable(result))
            program = self._known.step(
                lines, portion.chunk, vectorised=portion.vectorised, narrow=self._narrow
            )
            last = lines.count - portion.chunk
            for turn in range(portion.turns):
                first = min(turn * portion.chunk, last)
                columns = program(list(leaves), tf.constant(first))
                block = values = None
                for view, block in zip(views, columns, strict=True):
                    values = array_of(block)
                    self.suspect |= not math.isfinite(abs(values.sum(dtype=_summing(values))))
                    place_columns(view, values, first, lines, whole=self._whole)
                del columns, block, values  # or they would live on beside the next chunk
                self._advance(portion.chunk, progress)
        return found

    def _advance(self, lines: int, progress: Callable[[float], None]) -> None:
        self._done += lines
        progress(min(1.0, self._done / self._plan.lines))

    def _shape(self, output: Leaf, source: Leaf, lines: Lines) -> tuple[int, ...]:
        if lines.examples and not self._whole:
            return (*output.shape, *source.shape[1:])
        return (*output.shape, *source.shape)


def part_of(leaves: Sequence[Any], start: int, batch: int) -> list[Any]:
    """So many examples of the inputs from one on; all of them where no batch is asked for."""
    return [leaf[start : start + batch] for leaf in leaves] if batch else list(leaves)


def place_columns(
    view: np.ndarray, values: np.ndarray, first: int, lines: Lines, *, whole: bool
) -> None:
    """Write some columns, given one after the other, where they belong in a result."""
    chunk = len(values)
    if not lines.examples:
        flat = view.reshape(-1, lines.along.size)
        flat[:, first : first + chunk] = values.T
        return
    count, each = lines.count, values.shape[2]
    if not whole:
        flat = view.reshape(lines.examples, each, count)
        flat[:, :, first : first + chunk] = values.transpose(1, 2, 0)
        return
    flat = view.reshape(lines.examples, each, lines.examples, count)
    for example in range(lines.examples):
        flat[example, :, example, first : first + chunk] = values[:, example].T


def writable(tensor: Any) -> np.ndarray:
    """The memory of a tensor that nobody else has seen yet, as an array that can be written."""
    tf = tensorflow()
    dtype = numpy_dtype(tensor.dtype)
    plain = tf.bitcast(tensor, tf.uint16) if dtype.itemsize == 2 else tensor  # noqa: PLR2004 - half
    address = np.asarray(memoryview(plain)).ctypes.data
    size = math.prod(tensor.shape) * dtype.itemsize
    if size == 0:
        return np.empty(tuple(tensor.shape), dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(tuple(tensor.shape))


def _summing(values: np.ndarray) -> Any:
    return np.complex128 if values.dtype.kind == "c" else np.float64
