"""Many small determinants: compiled where that pays, with NumPy otherwise."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.errors import InputError
from snugly.linalg.certainty import DOUBT
from snugly.linalg.closed_form import LARGEST
from snugly.linalg.lanes import CHUNK, smallest_chunk, stack_of
from snugly.linalg.outcome import Outcome
from snugly.linalg.stack import Stack

if TYPE_CHECKING:
    from snugly.linalg.plan import Plan
    from snugly.linalg.sources import Source

_WORTH_COMPILING: Final = 1_000_000
"""Elements from which a compiled pass saves more in a few calls than compiling takes."""


def compute_stack(source: Source, plan: Plan, *, compiled: bool) -> Outcome:
    """The determinants of a stack, in portions of `plan.width` bytes."""
    array = source.array
    if compiled and array is not None and array.flags.c_contiguous:
        stack = _compiled(array.reshape(-1, source.size, source.size), plan)
        if stack is not None:
            return _outcome(source, plan, stack)
    return _outcome(source, plan, _in_portions(source, plan, whole=not compiled))


def _compiled(matrices: np.ndarray, plan: Plan) -> Stack | None:
    """By XLA, if TensorFlow is here and the budget was not so small that portions are smaller."""
    few = matrices.size < _WORTH_COMPILING or plan.width < CHUNK
    if few or "tensorflow" not in sys.modules:
        return None
    from snugly.linalg.compiled import compiled_stack

    stack = compiled_stack(matrices)
    if stack is None:
        return None
    if stack.is_certain:
        return stack
    # Not a number, or zero: the compiled pass cannot tell why, NumPy can.
    doubtful = np.flatnonzero(~(stack.bar < DOUBT))
    again = stack_of(matrices[doubtful])
    stack = Stack(stack.sign.copy(), stack.logarithm.copy(), stack.bar.copy())
    stack.sign[doubtful], stack.logarithm[doubtful] = again.sign, again.logarithm
    stack.bar[doubtful] = again.bar
    return stack


def _in_portions(source: Source, plan: Plan, *, whole: bool) -> Stack:
    """With NumPy; `whole` asks for the determinants themselves beside their logarithms."""
    count, size = source.count, source.size
    step = max(1, plan.width // smallest_chunk(size, source.working.itemsize))
    wide = np.promote_types(source.working, np.float64)
    results = Stack(
        np.empty(count, source.working),
        np.empty(count),
        np.empty(count),
        np.empty(count, wide) if whole and size <= LARGEST else None,
        np.empty(count, np.int64) if whole and size <= LARGEST else None,
    )
    for start in range(0, count, step):
        stop = min(start + step, count)
        portion = np.empty((stop - start, size, size), source.working)
        _read(source, start, portion)
        results.put(start, stack_of(portion, plan.width))
    return results


def _read(source: Source, start: int, portion: np.ndarray) -> None:
    numbers = range(start, start + len(portion))
    array = source.array
    if array is None:
        for place, number in enumerate(numbers):
            # As columns: the determinant is that of the transpose.
            source.read(number, 0, source.size, portion[place].T)
    elif array.flags.c_contiguous:
        flat = array.reshape(-1, source.size, source.size)
        np.copyto(portion, flat[numbers.start : numbers.stop], casting="unsafe")
    elif source.batch:
        places = np.unravel_index(np.arange(numbers.start, numbers.stop), source.batch)
        np.copyto(portion, array[places], casting="unsafe")
    else:
        np.copyto(portion[0], array, casting="unsafe")


def _outcome(source: Source, plan: Plan, stack: Stack) -> Outcome:
    bar = stack.bar
    is_certain = stack.is_certain or _all_small(bar)
    certain = np.broadcast_to(is_certain, bar.shape) if is_certain else bar < DOUBT
    if not is_certain:
        _refuse_what_is_not_finite(source, np.flatnonzero(~certain))
        bar = np.where(certain, bar, np.inf)
        certain = certain.copy()
    batch = source.batch
    mantissa, exponent = stack.mantissa, stack.exponent
    return Outcome(
        stack.sign.reshape(batch),
        stack.logarithm.reshape(batch),
        bar.reshape(batch),
        certain.reshape(batch),
        None if mantissa is None else mantissa.reshape(batch),
        None if exponent is None else exponent.reshape(batch),
        plan.method,
        plan.reason,
        plan.peak,
        is_certain=is_certain,
        tensors=stack.tensors,
    )


def _all_small(bar: np.ndarray) -> bool:
    """One pass for the usual case; a bar that is not a number is not small."""
    with np.errstate(invalid="ignore"):
        return bool(bar.max(initial=0) < DOUBT)


def _refuse_what_is_not_finite(source: Source, suspects: np.ndarray) -> None:
    size = source.size
    matrix = np.empty((size, size), source.working)
    for index in suspects:
        source.read(int(index), 0, size, matrix.T)
        bad = np.argwhere(~np.isfinite(matrix))
        if len(bad):
            row, column = (int(i) for i in bad[0])
            # `matrix` holds the columns of the source as its rows.
            place = source.position(int(index), column, row)
            raise InputError(
                f"{source.title} has {matrix[row, column]} at {list(place)}:"
                " there is no determinant",
                code="SNG503",
                hint="find out where it comes from: `tf.debugging.enable_check_numerics()`",
            )
