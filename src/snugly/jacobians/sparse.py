"""Sparse Jacobians: as many products as there are colours, not columns.

A pattern is given or found. Finding it begins with bands, which are tried with as many products as
they are wide and held against a product with random numbers. What is no band is found by halving:
blocks of columns that share no block of rows are asked together, and those that answer are halved,
until single entries are left. The pattern is that at this x: entries that are zero here are left
out. Nothing larger than a few vectors and the pattern itself is held.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import sparse

from snugly.errors import InputError, MemoryLimitExceeded
from snugly.jacobians.colouring import colour_columns
from snugly.jacobians.known import Known, known
from snugly.jacobians.memory import OBJECTS, transient_of
from snugly.jacobians.plan import Plan
from snugly.jacobians.products import _pull as pull
from snugly.jacobians.products import _push as push
from snugly.jacobians.products import product_program
from snugly.jacobians.subject import tensorflow, tensors_of
from snugly.progress import shown
from snugly.readers.host_memory import array_of
from snugly.units import Size

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

_BANDS: Final = (3, 5)
"""Widths of bands that are tried: with the random product that is 9 products at most."""
_ENTRY: Final = 72
"""Bytes an entry takes while a matrix is put together: places twice, number, sorting (measured)."""


class _Products:
    """J·v or uᵀ·J on flat arrays, counted."""

    def __init__(self, about: Known, leaves: Sequence[Any], *, forward: bool) -> None:
        subject = about.subject
        self._leaves = list(leaves)
        self._from = (subject.sources if forward else subject.outputs)[0]
        to = (subject.outputs if forward else subject.sources)[0]
        self.columns, self.rows = self._from.size, to.size
        name, body = ("jvp", push) if forward else ("vjp", pull)
        self.program = product_program(about, name, body, [self._from])
        self.count = 0
        self.dtype = array_of(leaves[0]).dtype

    def weights(self) -> np.ndarray:
        """Random numbers that the function's own type holds exactly."""
        return np.random.default_rng(7).uniform(0.5, 1.5, self.columns).astype(self.dtype)

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        tf = tensorflow()
        seed = tf.reshape(tf.cast(tf.constant(vector), self._from.dtype), self._from.shape)
        self.count += 1
        return array_of(self.program(self._leaves, [seed])[0]).reshape(-1)


def sparse_jacobian(  # noqa: PLR0913 - as `jacobian`
    f: Any,
    x: Any,
    sparsity: Any,
    memory: int | str | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    mode: str = "auto",
    progress: Callable[[float], None] | None = None,
) -> Any:
    """The Jacobian as a SciPy sparse matrix, outputs by inputs, both flattened."""
    about, leaves = known(f, x), tensors_of(x)
    _check(about, out)
    pattern = _given(about, sparsity)
    forward = _is_forward(mode, pattern)
    products = _Products(about, leaves, forward=forward)
    budget = None if memory is None else Size(memory)
    held = _require(about, products, pattern, budget)
    with shown(f"Jacobian of {about.subject.title}", progress) as report:
        if pattern is None:
            found = _detected(products, report, budget)
            found.eliminate_zeros()
        else:
            found = _compressed(products, pattern if forward else pattern.T.tocsr(), report)
            _verify(products, found)
    result: Any = sparse.csr_matrix(found if forward else found.T)
    plan = _plan(about, products, result, held, forward=forward)
    result.plan, result.method, result.reason = plan, plan.method, plan.reason
    result.notes = plan.notes
    if out is not None:
        try:
            sparse.save_npz(out, result)
        except OSError as error:
            raise InputError(f"{out} cannot be written: {error}", code="SNG527") from error
    return result


def _detected(
    products: _Products, report: Callable[[float], None], budget: Size | None
) -> sparse.csr_array:
    random = products.weights()
    expected = products(random)
    if products.rows == products.columns:
        for width in _BANDS:
            if width > products.columns:
                break
            found = _compressed(products, _band(products.rows, width), report)
            if _agrees(found, random, expected):
                return found
    pattern = _halved(products, budget)
    return _compressed(products, pattern, report)


def _compressed(
    products: _Products, pattern: sparse.csr_array, report: Callable[[float], None]
) -> sparse.csr_array:
    """All entries of a pattern, from one product a colour."""
    colours = colour_columns(pattern)
    of_entry = colours[pattern.indices]
    count_of_rows = len(pattern.indptr) - 1
    rows = np.repeat(np.arange(count_of_rows, dtype=np.int32), np.diff(pattern.indptr))
    data = np.zeros(pattern.nnz, products.dtype)
    count = int(colours.max(initial=-1)) + 1
    for colour in range(count):
        product = products((colours == colour).astype(products.dtype))
        mine = of_entry == colour
        data[mine] = product[rows[mine]]
        report((colour + 1) / count)
    return sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)


def _halved(products: _Products, budget: Size | None) -> sparse.csr_array:
    """The pattern, found by halving blocks of columns and rows until they are single entries."""
    draw = np.random.default_rng(11)
    weights = draw.uniform(0.5, 1.5, products.columns)
    levels = max(1, (max(products.rows, products.columns) - 1).bit_length())
    pattern = sparse.csr_array(np.ones((1, 1), bool))
    for level in range(1, levels + 1):
        side = 1 << (levels - level)
        rows, columns = -(-products.rows // side), -(-products.columns // side)
        candidates = _children(pattern, rows, columns)
        if budget is not None and candidates.nnz * _ENTRY > budget:
            raise MemoryLimitExceeded(
                f"the Jacobian is too full for a sparse one inside {budget}: more than"
                f" {candidates.nnz:,} entries",
                code="SNG521",
                hint='leave sparsity out, and stream it: `out="j.npy"`',
            )
        colours = colour_columns(candidates)
        block_of_column = np.arange(products.columns) // side
        found_rows, found_columns = [], []
        entry_rows = np.repeat(np.arange(rows), np.diff(candidates.indptr))
        for colour in range(int(colours.max(initial=-1)) + 1):
            chosen = colours[block_of_column] == colour
            product = products(np.where(chosen, weights, 0.0))
            touched = np.zeros(rows, bool)
            touched[np.flatnonzero(product) // side] = True  # NaN counts as touched
            mine = (colours[candidates.indices] == colour) & touched[entry_rows]
            found_rows.append(entry_rows[mine])
            found_columns.append(candidates.indices[mine])
        places = (np.concatenate(found_rows), np.concatenate(found_columns))
        pattern = sparse.csr_array((np.ones(len(places[0]), bool), places), shape=(rows, columns))
    return pattern


def _children(pattern: sparse.csr_array, rows: int, columns: int) -> sparse.csr_array:
    """The four quarters of every block, where the matrix goes that far."""
    coordinates = pattern.tocoo()
    row, column = coordinates.coords
    quarters_row = np.concatenate([2 * row + a for a in (0, 0, 1, 1)])
    quarters_column = np.concatenate([2 * column + b for b in (0, 1, 0, 1)])
    inside = (quarters_row < rows) & (quarters_column < columns)
    places = (quarters_row[inside], quarters_column[inside])
    return sparse.csr_array((np.ones(int(inside.sum()), bool), places), shape=(rows, columns))


def _band(size: int, width: int) -> sparse.csr_array:
    reach = width // 2
    offsets = range(-reach, reach + 1)
    diagonals = [np.ones(size - abs(offset), np.int8) for offset in offsets]
    places: Any = list(offsets)
    return sparse.csr_array(sparse.diags_array(diagonals, offsets=places, dtype=np.int8))


def _agrees(found: sparse.csr_array, vector: np.ndarray, expected: np.ndarray) -> bool:
    """Whether a matrix gives the product that the function gave, up to rounding."""
    precision = float(np.finfo(expected.dtype).eps) if expected.dtype.kind in "fc" else 1e-2
    wide = found.astype(np.result_type(found.dtype, np.float64))
    size = abs(wide) @ np.abs(vector)
    off = np.abs(wide @ vector - expected)
    # Rounding of sums as long as a row; NaN agrees with nothing.
    return bool(np.all(off <= 32 * precision * size))


def _verify(products: _Products, found: sparse.csr_array) -> None:
    vector = products.weights()
    if not _agrees(found, vector, products(vector)):
        raise InputError(
            "the pattern that was given leaves out entries that are not zero",
            code="SNG529",
            hint='let it be found: `sparsity="detect"`',
        )


def _check(about: Known, out: Any) -> None:
    subject = about.subject
    if len(subject.outputs) != 1 or len(subject.sources) != 1:
        raise InputError("a sparse Jacobian is that of one input and one output", code="SNG529")
    if subject.random:
        raise InputError(f"{subject.title} draws random numbers", code="SNG528")
    if out is not None and Path(out).suffix != ".npz":
        raise InputError(
            "a sparse Jacobian is kept in an .npz file", code="SNG529", hint='out="j.npz"'
        )
    if out is not None and Path(out).exists():
        raise InputError(f"{out} exists", code="SNG524", hint="choose another name")


def _given(about: Known, sparsity: Any) -> sparse.csr_array | None:
    if isinstance(sparsity, str):
        if sparsity != "detect":
            raise InputError(
                f"sparsity cannot be {sparsity!r}", code="SNG529", hint='sparsity="detect"'
            )
        return None
    shape = (about.subject.outputs[0].size, about.subject.sources[0].size)
    pattern = sparse.csr_array(sparsity, dtype=bool)
    pattern.sum_duplicates()
    pattern.eliminate_zeros()
    if pattern.shape != shape:
        raise InputError(
            f"the pattern has the shape {pattern.shape}, the Jacobian {shape}", code="SNG529"
        )
    return pattern


def _is_forward(mode: str, pattern: sparse.csr_array | None) -> bool:
    if mode != "auto" or pattern is None:
        return mode != "reverse"
    longest_row = int(np.diff(pattern.indptr).max(initial=0))
    longest_column = int(np.bincount(pattern.indices, minlength=1).max(initial=0))
    return longest_row <= longest_column


def _require(
    about: Known, products: _Products, pattern: sparse.csr_array | None, budget: Size | None
) -> Size:
    """What it takes, as far as that is known before the pattern is."""
    passing = about.program(("memory of", products.program.name), lambda: _passing(products))
    entries = pattern.nnz if pattern is not None else _BANDS[-1] * products.columns
    vectors = (products.rows + products.columns) * 24
    held = Size(passing + vectors + entries * _ENTRY + OBJECTS)
    if budget is not None and held > budget:
        raise MemoryLimitExceeded(
            f"the sparse Jacobian of {about.subject.title} needs at least {held} ({int(held):,}"
            f" bytes); {budget} was given",
            code="SNG521",
            hint=f"`memory={int(held)}`",
        )
    return held


def _passing(products: _Products) -> int:
    try:
        return transient_of(products.program, None)[0]
    except Exception:  # noqa: BLE001 - what cannot be predicted is estimated from its vectors
        return (products.rows + products.columns) * 64


def _plan(about: Known, products: _Products, result: Any, held: Size, *, forward: bool) -> Plan:
    size = result.data.nbytes + result.indices.nbytes + result.indptr.nbytes
    plan = Plan(
        method="sparse",
        mode="forward" if forward else "reverse",
        reason=f"{products.count} products for {result.nnz:,} entries of {about.subject.title}",
        chunk=1,
        lines=products.count,
        vectorised=False,
        result=Size(size),
        peak=held,
        provenance="predicted",
    )
    return replace(plan, peak=max(held, Size(result.nnz * _ENTRY)))
