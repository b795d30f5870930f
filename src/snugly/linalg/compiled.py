"""Very many small determinants, compiled by XLA: one pass over the matrices.

Used only where TensorFlow is in the process already. XLA compiles for one shape, which takes half a
second to several; so a shape is compiled when it comes for the second time (`Asked`), and until
then NumPy does the work (`lanes`).

Two things make it fast. XLA on a CPU computes each output of a function in a loop of its own, so
log|det|, and the error bar with the determinant's sign, are packed into one complex number a
matrix, and taken apart by a second, short function. And the matrices are passed where they lie:
XLA's code may assume 64-byte alignment, which NumPy does not keep, so a view is passed that begins
at the aligned address just below, and the function skips the elements in between.
"""

from __future__ import annotations

import ctypes
import math
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from typing import Any, Final

import numpy as np

from snugly.linalg.certainty import DOUBT
from snugly.linalg.closed_form import LARGEST, ROUNDINGS, leibniz
from snugly.linalg.elimination import SAFE_FLOAT32, SAFE_FLOAT64, eliminate, power_of_two
from snugly.linalg.lanes import stack_of
from snugly.linalg.stack import Stack

_ALIGNMENT: Final = 64
_LANES: Final = 32
"""Matrices that are eliminated side by side: 16×16 of float32 fill 32 KiB, a level-1 cache."""
_THREADS: Final = 2
_MOST_SHAPES: Final = 16
_LOG_ERROR: Final = 1.2e-7
"""XLA's float32 logarithm of a mantissa, in units of its last place: one, of at most 0.69."""


class Asked:
    """Which shapes came how often, and what was compiled for them; the oldest is forgotten."""

    def __init__(self) -> None:
        self._functions: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def function_for(self, key: tuple[Any, ...]) -> Any:
        """The compiled function of a key, or None where the key came for the first time."""
        known = key in self._functions
        function = self._functions.pop(key, None)
        if known and function is None:
            function = _compile(*key)
        self._functions[key] = function
        while len(self._functions) > _MOST_SHAPES:
            self._functions.popitem(last=False)
        return function


_asked = Asked()


def compiled_stack(matrices: np.ndarray) -> Stack | None:
    """The determinants of (count, n, n) matrices; None where nothing is compiled for them yet."""
    count, size, _ = matrices.shape
    if not matrices.flags.c_contiguous or matrices.dtype not in (np.float32, np.float64):
        return None
    parts = 1 if size <= LARGEST else _THREADS
    each = count // parts
    if size > LARGEST:
        each = each // _LANES * _LANES
    if each == 0:
        return None
    skipped = matrices.ctypes.data % _ALIGNMENT // matrices.itemsize
    # Parts begin where the one before ends: aligned alike only if a part is a multiple of 64 bytes.
    if each * size * size * matrices.itemsize % _ALIGNMENT:
        return None
    function = _asked.function_for((size, matrices.dtype.name, each, skipped))
    if function is None:
        return None
    pieces = [matrices[part * each : (part + 1) * each] for part in range(parts)]
    if parts == 1:
        return _run(function, pieces[0], skipped)
    with ThreadPoolExecutor(parts) as pool:
        done = list(pool.map(lambda piece: _run(function, piece, skipped), pieces))
    rest = [stack_of(matrices[parts * each :])] if parts * each < count else []
    return Stack.joined([*done, *rest])


def _run(functions: Any, matrices: np.ndarray, skipped: int) -> Stack:
    import tensorflow as tf

    address = matrices.ctypes.data - skipped * matrices.itemsize
    length = matrices.nbytes + skipped * matrices.itemsize
    flat = np.ctypeslib.as_array((ctypes.c_ubyte * length).from_address(address))
    packing, taking_apart = functions
    with tf.device("/CPU:0"):
        tensor = tf.experimental.dlpack.from_dlpack(flat.view(matrices.dtype).__dlpack__())
        sign, logarithm, bar, is_certain = taking_apart(packing(tensor))
    results = (np.asarray(memoryview(part)) for part in (sign, logarithm, bar))
    return Stack(*results, is_certain=bool(is_certain), tensors=(sign, logarithm))


def _compile(size: int, dtype: str, count: int, skipped: int) -> Any:
    import tensorflow as tf

    per_matrix = size * size

    def closed(flat: Any) -> Any:
        # Strided slices of the whole: a slice that is reshaped first would be copied.
        entries = [flat[skipped + entry :: per_matrix] for entry in range(per_matrix)]
        return _closed_form(tf, entries, size)

    def eliminated(flat: Any) -> Any:
        lanes = _LANES * per_matrix
        logarithm = partial(_logarithm, tf, exact=flat.dtype == tf.float64)

        def body(i: Any, packed: Any) -> Any:
            piece = tf.slice(flat, [skipped + i * lanes], [lanes])
            matrices = tf.transpose(tf.reshape(piece, (_LANES, size, size)), (1, 2, 0))
            result = _pack(tf, *eliminate(tf, matrices, size, logarithm), flat.dtype)
            return i + 1, tf.tensor_scatter_nd_update(packed, [[i]], result[tf.newaxis])

        complex_type = tf.complex64 if flat.dtype == tf.float32 else tf.complex128
        begin = (tf.constant(0), tf.zeros((count // _LANES, _LANES), complex_type))
        _, packed = tf.while_loop(lambda i, _: i < count // _LANES, body, begin)
        return tf.reshape(packed, (count,))

    specification = tf.TensorSpec((skipped + count * per_matrix,), dtype)
    chosen = closed if size <= LARGEST else eliminated
    packing = tf.function(
        chosen, input_signature=[specification], jit_compile=True, autograph=False
    )
    return packing, tf.function(partial(_take_apart, tf), jit_compile=True, autograph=False)


def _closed_form(tf: Any, entries: list[Any], size: int) -> Any:
    rows = [entries[row * size : (row + 1) * size] for row in range(size)]
    moduli = [[tf.abs(entry) for entry in row] for row in rows]
    across = [reduce(tf.add, row) for row in moduli]
    down = [reduce(tf.add, column) for column in zip(*moduli, strict=True)]
    exponent: Any = 0.0
    narrow = entries[0].dtype == tf.float32
    is_safe = reduce(tf.minimum, [*across, *down]) > (SAFE_FLOAT32 if narrow else SAFE_FLOAT64)
    if narrow:
        rows = [[tf.cast(entry, tf.float64) for entry in row] for row in rows]
    else:
        rows, exponent = _scaled_rows(tf, rows)
    determinant, permanent = leibniz(rows, tf.abs)
    if narrow:
        # Not less than the permanent, at a third of the operations; far below float32's roundoff.
        permanent = reduce(tf.multiply, [tf.cast(each, tf.float64) for each in across])
    modulus = tf.abs(determinant)
    logarithm, rounding = _logarithm(tf, modulus, exact=not narrow)
    logarithm += exponent * math.log(2)
    bar = permanent / modulus * (ROUNDINGS * 2.0**-53) + rounding
    bar = tf.where(is_safe, bar, tf.constant(math.inf, tf.float64))
    return _pack(tf, tf.sign(determinant), logarithm, bar, entries[0].dtype)


def _scaled_rows(tf: Any, rows: list[list[Any]]) -> tuple[list[list[Any]], Any]:
    scaled, total = [], 0.0
    for row in rows:
        factor, exponent = power_of_two(tf, tf.reduce_max(tf.abs(tf.stack(row)), axis=0))
        scaled.append([entry * factor for entry in row])
        total += exponent
    return scaled, total


def _logarithm(tf: Any, modulus: Any, *, exact: bool) -> tuple[Any, Any]:
    """The logarithm of float64 numbers; through float32 unless `exact`, which halves the time."""
    if exact:
        return tf.math.log(modulus), 2.0**-52 * tf.abs(tf.math.log(modulus))
    bits = tf.bitcast(modulus, tf.int64)
    exponent = tf.cast(tf.cast(tf.bitwise.right_shift(bits, 52), tf.int32) - 1022, tf.float64)
    fraction = tf.bitwise.bitwise_and(bits, (1 << 52) - 1)
    mantissa = tf.bitcast(tf.bitwise.bitwise_or(fraction, 1022 << 52), tf.float64)
    near = tf.cast(mantissa, tf.float32)
    wide = tf.cast(near, tf.float64)
    fine = tf.cast(tf.math.log(near), tf.float64) + (mantissa - wide) / wide
    logarithm = tf.where(
        bits == 0, tf.constant(-math.inf, tf.float64), exponent * math.log(2) + fine
    )
    return logarithm, _LOG_ERROR


def _pack(tf: Any, sign: Any, logarithm: Any, bar: Any, dtype: Any) -> Any:
    """log|det| as the real part, the bar with the determinant's sign as the imaginary part."""
    if dtype == tf.float32:
        bar += 2.0**-24 * tf.abs(logarithm)  # it is rounded to float32 here
    return tf.complex(tf.cast(logarithm, dtype), tf.cast(bar, dtype) * tf.cast(sign, dtype))


def _take_apart(tf: Any, packed: Any) -> tuple[Any, Any, Any, Any]:
    logarithm, signed = tf.math.real(packed), tf.math.imag(packed)
    bar = tf.abs(signed)
    # A bar that is not a number is not small.
    return tf.sign(signed), logarithm, bar, tf.reduce_all(bar < DOUBT)
