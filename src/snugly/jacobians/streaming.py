"""A Jacobian larger than memory: computed a few rows at a time, written where it belongs on disk.

With one input and one output the file has the Jacobian's own shape. With several, or for all
weights of a model, it is one matrix: a row for every number of the outputs, a column for every
number of the inputs, both in order.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError
from snugly.jacobians.computing import part_of
from snugly.jacobians.stores import NpyStore, Store, ZarrStore
from snugly.jacobians.subject import numpy_dtype, tensorflow
from snugly.readers.host_memory import array_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from snugly.jacobians.known import Known
    from snugly.jacobians.pieces import Outline, SentPortion
    from snugly.jacobians.plan import Plan, Portion
    from snugly.jacobians.subject import Leaf, Subject

_BETWEEN_NOTES: Final = 1.0
"""Seconds between two entries about how far the work has come."""
_CHUNK_FILE: Final = 16 << 20
"""Bytes of a file of a Zarr array, about."""


class Streamed:
    """A Zarr array on disk; `os.fspath` gives its path, `numpy.asarray` reads it whole."""

    def __init__(self, store: Store) -> None:
        self.path = store.path
        self.shape = store.shape
        self.dtype = store.dtype
        self._chunks = store.grain

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        names = sorted(
            (p for p in self.path.iterdir() if p.name != ".zarray"),
            key=lambda p: tuple(int(part) for part in p.name.split(".")),
        )
        parts = [np.fromfile(name, self.dtype) for name in names]
        return np.concatenate(parts).reshape(self.shape).astype(dtype or self.dtype, copy=False)

    def __repr__(self) -> str:
        return f"Streamed({str(self.path)!r}, shape={self.shape}, dtype={self.dtype.name})"


def open_store(path: Path, subject: Subject, *, examples: int, whole: bool, narrow: Any) -> Store:
    """The store that a path asks for by its ending."""
    outputs, sources = subject.outputs, subject.sources
    dtypes = {numpy_dtype(narrow or leaf.dtype) for leaf in sources}
    if len(dtypes) > 1:
        raise InputError(
            "inputs of several types cannot share one file", code="SNG529", hint="stream them apart"
        )
    columns = sum(leaf.size for leaf in sources)
    rows: tuple[int, ...] = (sum(leaf.size for leaf in outputs),)
    trailing: tuple[int, ...] = (columns,)
    if len(outputs) == len(sources) == 1:
        rows, trailing = outputs[0].shape, sources[0].shape
        if examples and not whole:
            trailing = trailing[1:]
            columns //= examples
    elif examples and not whole:
        raise InputError(
            "per_example streams one input and one output", code="SNG529", hint="stream them apart"
        )
    return store_for(path, rows, trailing, dtypes.pop())


def store_for(
    path: Path, rows: tuple[int, ...], trailing: tuple[int, ...], dtype: np.dtype[Any]
) -> Store:
    """An `.npy` file or a Zarr array of shape (*rows, *trailing)."""
    columns = int(np.prod(trailing, dtype=np.int64))
    if path.suffix == ".npy":
        return NpyStore(path, (*rows, *trailing), columns, dtype)
    if path.suffix == ".zarr":
        return ZarrStore(path, (*rows, *trailing), columns, dtype, len(rows), _CHUNK_FILE)
    raise InputError(
        f"{path.name!r} ends neither in .npy nor in .zarr",
        code="SNG529",
        hint='out="j.npy", or out="j.zarr"',
    )


def stream(  # noqa: PLR0913 - what a computation is made of
    known: Known,
    plan: Plan,
    store: Store,
    leaves: Sequence[Any],
    *,
    whole: bool,
    narrow: Any,
    overwrite: bool,
    progress: Callable[[float], None],
) -> bool:
    """Fill a store, or go on filling it; whether some entry may not be finite."""
    fingerprint = fingerprint_of(known.subject, plan, leaves, narrow)
    done = store.begin(fingerprint, overwrite=overwrite)
    writer = Writer(known.subject, store, whole=whole)
    suspect, noted = False, time.monotonic()
    try:
        for portion, first, number, example in _chunks(plan):
            if number + portion.chunk <= done:
                continue
            program = known.of_batch(plan.batch).step(
                portion.lines, portion.chunk, vectorised=portion.vectorised, narrow=narrow
            )
            batch = part_of(leaves, example, plan.batch)
            found = program(batch, tensorflow().constant(first))
            values = block = None
            for across, block in enumerate(found):
                values = array_of(block)
                suspect |= not np.isfinite(values.sum(dtype=summing(values)))
                writer.write(portion, across, first, values, example)
            del found, values, block, batch
            progress(min(1.0, (number + portion.chunk) / plan.lines))
            if time.monotonic() - noted > _BETWEEN_NOTES:
                store.note(fingerprint, number + portion.chunk)
                noted = time.monotonic()
        store.finish()
    finally:
        store.close()
    return suspect


def opened(store: Store) -> Any:
    """The finished result: a memory map, or a Zarr array."""
    if isinstance(store, NpyStore):
        return np.load(store.path, mmap_mode="r")
    return Streamed(store)


def fingerprint_of(subject: Subject, plan: Plan, leaves: Sequence[Any], narrow: Any) -> str:
    """What must be the same for a killed run to be gone on with: function, weights, input, plan."""
    digest = hashlib.sha256()
    parts = (plan.chunk, plan.lines, plan.batch, plan.segments)
    steps = (plan.method, plan.mode, *parts, str(narrow))
    digest.update(repr(steps).encode())
    graph = subject.concrete.graph
    operations = graph.get_operations()
    position = {operation.name: number for number, operation in enumerate(operations)}
    for operation in operations:
        # Names are numbered anew in each process; what is computed is in kinds and constants.
        digest.update(operation.type.encode())
        digest.update(repr([position[tensor.op.name] for tensor in operation.inputs]).encode())
        if operation.type == "Const":
            digest.update(operation.get_attr("value").SerializeToString(deterministic=True))
    for tensor in leaves:
        digest.update(np.ascontiguousarray(tensor.numpy()).tobytes())
    variables = {id(variable.handle): variable for variable in graph.variables}
    # By where they come in: `graph.variables` has another order in each process.
    for outer, place in sorted(graph.captures, key=lambda both: position[both[1].op.name]):
        digest.update(repr(position[place.op.name]).encode())
        if id(outer) in variables:
            digest.update(array_of(variables.pop(id(outer)).read_value()).tobytes())
        elif hasattr(outer, "numpy") and outer.dtype.is_numpy_compatible:
            digest.update(np.ascontiguousarray(outer.numpy()).tobytes())
    unplaced = [array_of(variable.read_value()).tobytes() for variable in variables.values()]
    for numbers in sorted(hashlib.sha256(raw).digest() for raw in unplaced):
        digest.update(numbers)
    for variable in subject.variables or ():
        digest.update(array_of(variable.read_value()).tobytes())
    return digest.hexdigest()


def _chunks(plan: Plan) -> Iterator[tuple[Portion, int, int, int]]:
    """Each chunk's portion, its first line, its place among all lines, and its first example."""
    before = 0
    for example in plan.starts():
        for portion in plan.portions:
            last = portion.lines.count - portion.chunk
            for turn in range(portion.turns):
                first = min(turn * portion.chunk, last)
                yield portion, first, before + first, example
            before += portion.lines.count


class Writer:
    """Knows where in the matrix the lines of each output and input belong."""

    def __init__(self, subject: Subject | Outline, store: Store, *, whole: bool) -> None:
        self._store, self._whole = store, whole
        self._rows = _offsets(subject.outputs)
        self._columns = _offsets(subject.sources)

    def write(
        self,
        portion: Portion | SentPortion,
        across: int,
        first: int,
        values: np.ndarray,
        before: int,
    ) -> None:
        """Put some lines where they belong; `before` so many examples of other batches."""
        lines = portion.lines
        if lines.mode == "forward":
            self._write_columns(portion, across, first, values)
        elif not lines.examples:
            self._store.write(self._rows[lines.leaf] + first, self._columns[across], values)
        else:
            self._write_blocks(portion, across, first, values, before)

    def _write_blocks(
        self,
        portion: Portion | SentPortion,
        across: int,
        first: int,
        values: np.ndarray,
        before: int,
    ) -> None:
        lines, width = portion.lines, values.shape[2]
        for number in range(lines.examples):
            example = before + number
            row = self._rows[lines.leaf] + example * lines.count + first
            column = self._columns[across] + example * width if self._whole else 0
            self._store.write(row, column, values[:, number])

    def _write_columns(
        self, portion: Portion | SentPortion, across: int, first: int, values: np.ndarray
    ) -> None:
        """Columns lie apart in the file: each row's few numbers are put one after the other."""
        lines, output = portion.lines, portion.lines.across[across]
        if not lines.examples:
            block = values.T
            self._store.write(self._rows[across], self._columns[lines.leaf] + first, block)
            return
        width = lines.count if self._whole else 0
        for example in range(lines.examples):
            row = self._rows[across] + example * (output.size // lines.examples)
            column = self._columns[lines.leaf] + example * width + first
            self._store.write(row, column, values[:, example].T)


def _offsets(leaves: Sequence[Leaf]) -> list[int]:
    return list(itertools.accumulate((leaf.size for leaf in leaves), initial=0))


def summing(values: np.ndarray) -> Any:
    """The type in which a sum over these numbers cannot overflow without one of them."""
    return np.complex128 if values.dtype.kind == "c" else np.float64
