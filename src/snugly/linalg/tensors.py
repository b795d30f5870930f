"""Determinants of TensorFlow's tensors: eager or inside a `tf.function`, with the right gradient.

A tensor in host memory is used where it lies. One on a GPU is factored there where it is large and
the budget holds it, and copied to the host otherwise, or where its sign stays open.

The gradient of log|det A| is A⁻ᴴ. It is as large as the matrix and is computed in place in the
memory it is returned in, so that nothing else of that size is held.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from snugly.errors import InputError
from snugly.linalg import on_device
from snugly.linalg.computing import Settings, compute
from snugly.linalg.inverse import inverse
from snugly.linalg.outcome import Outcome
from snugly.linalg.result import LogDeterminant
from snugly.linalg.sources import ArraySource, checked_shape, working_dtype
from snugly.readers.host_memory import array_of
from snugly.units import Size


def slogdet_of_tensor(a: Any, settings: Settings) -> LogDeterminant:
    """`slogdet` of a tensor or variable."""
    import tensorflow as tf

    settings = settings.keeping_input()
    tensor = _as_tensor(tf, a)
    if tf.executing_eagerly() and hasattr(tensor, "numpy"):
        return _eagerly(tf, tensor, settings)
    return _in_graph(tf, tensor, settings)


def array_of_tensor(a: Any) -> np.ndarray:
    """A tensor's own memory as an array that must not be written to, or a copy from a GPU."""
    import tensorflow as tf

    tensor = _as_tensor(tf, a)
    if not hasattr(tensor, "numpy"):
        raise InputError(
            "det gives numbers, which a tensor inside a tf.function does not have yet",
            hint="use snugly.linalg.slogdet, which gives tensors there",
        )
    return array_of(tensor)


def _as_tensor(tf: Any, a: Any) -> Any:
    try:
        return tf.convert_to_tensor(a)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"a {type(a).__name__} is no plain tensor",
            code="SNG502",
            hint="convert it: `a.to_tensor()`, or `tf.sparse.to_dense(a)`",
        ) from error


def _eagerly(tf: Any, tensor: Any, settings: Settings) -> LogDeterminant:
    outcome = _on_gpu(tf, tensor, settings)
    if outcome is None:
        outcome = compute(ArraySource(array_of(tensor), "the tensor"), settings)

    @tf.custom_gradient
    def differentiable(matrix: Any) -> Any:
        sign, logabs = _tensors(tf, outcome, matrix.dtype)
        return (sign, logabs), _gradient(tf, matrix)

    sign, logabs = differentiable(tensor)
    real = tensor.dtype.real_dtype.as_numpy_dtype
    return LogDeterminant(
        sign,
        logabs,
        error=_with_rounding(outcome, np.dtype(real))[()],
        sign_certain=outcome.certain[()],
        method=outcome.method,
        reason=outcome.reason,
        peak=outcome.peak,
    )


def _on_gpu(tf: Any, tensor: Any, settings: Settings) -> Outcome | None:
    """The determinants of large matrices on a GPU; None where the host does better."""
    size = tensor.shape[-1] if tensor.shape.rank else 0
    small = size < _SMALLEST_ON_GPU or tensor.dtype not in (tf.float32, tf.float64, tf.complex128)
    if "GPU" not in tensor.device or small or tensor.shape[-2] != size:
        return None
    if not on_device.fits(size, tensor.dtype.size, settings.budget):
        return None
    matrices = tf.reshape(tensor, (-1, size, size))
    if not bool(tf.reduce_all(tf.math.is_finite(tf.abs(matrices)))):
        return None  # the host says where
    shape, dtype = tuple(tensor.shape.as_list()), tensor.dtype.as_numpy_dtype
    peak = Size(on_device.HELD * size * size * tensor.dtype.size)
    reason = "the matrix is on the GPU, which has room to factor it"
    outcome = Outcome.of_ones(shape[:-2], np.dtype(dtype), ("gpu", reason, peak))
    for index in range(matrices.shape[0]):
        found = on_device.factor_on_device(tf, matrices[index])
        if not found.certain:
            return None
        outcome.put(index, found)
    return outcome


_SMALLEST_ON_GPU: Final = 256
"""Below this the copy to the host takes less than starting a GPU's kernels (assumed)."""


def _in_graph(tf: Any, tensor: Any, settings: Settings) -> LogDeterminant:
    """Inside a `tf.function` the numbers are tensors, error bar and certainty too."""
    if tensor.shape.rank is not None and tensor.shape.is_fully_defined():
        checked_shape(tuple(tensor.shape.as_list()), "the tensor")
    working_dtype(np.dtype(tensor.dtype.as_numpy_dtype), "the tensor")
    real = tensor.dtype.real_dtype

    def at_run_time(array: np.ndarray) -> tuple[np.ndarray, ...]:
        outcome = compute(ArraySource(array, "the tensor"), settings)
        narrow = np.dtype(real.as_numpy_dtype)
        return (
            outcome.sign.astype(array.dtype),
            outcome.logabs.astype(narrow),
            _with_rounding(outcome, narrow).astype(np.float64),
            np.array(outcome.certain),
        )

    @tf.custom_gradient
    def differentiable(matrix: Any) -> Any:
        types = (matrix.dtype, real, tf.float64, tf.bool)
        results = tf.numpy_function(at_run_time, [matrix], types, stateful=False)
        for result in results:
            result.set_shape(matrix.shape[:-2])
        gradient = _gradient(tf, matrix)
        return tuple(results), lambda sign, logabs, *_: gradient(sign, logabs)

    sign, logabs, error, certain = differentiable(tensor)
    return LogDeterminant(
        sign,
        logabs,
        error=error,
        sign_certain=certain,
        method="at run time",
        reason="the method is chosen when the function runs",
        peak=settings.budget or Size(0),
    )


def _gradient(tf: Any, matrix: Any) -> Any:
    def gradient(_: Any, logabs: Any) -> Any:
        return _weighed_inverse(tf, matrix, logabs)

    return gradient


def _weighed_inverse(tf: Any, matrix: Any, weight: Any) -> Any:
    """The weight times A⁻ᴴ, itself differentiable as often as one likes."""

    @tf.custom_gradient
    def differentiable(matrix: Any, weight: Any) -> Any:
        if tf.executing_eagerly() and hasattr(matrix, "numpy"):
            found = _inverse_of_array(array_of(matrix), weight.numpy())
            value = _tensor_on(tf, found)
        else:
            both = [matrix, weight]
            value = tf.numpy_function(_inverse_of_array, both, matrix.dtype, stateful=False)
            value.set_shape(matrix.shape)

        def gradient(upstream: Any) -> tuple[Any, Any]:
            # d(A⁻ᴴ) = -A⁻ᴴ · dAᴴ · A⁻ᴴ
            inverse_adjoint = _weighed_inverse(tf, matrix, tf.ones_like(weight))
            by_weight = tf.reduce_sum(tf.math.conj(inverse_adjoint) * upstream, axis=(-2, -1))
            inside = tf.matmul(upstream, inverse_adjoint, adjoint_a=True)
            by_matrix = -tf.matmul(inverse_adjoint, inside)
            factor = tf.cast(weight, matrix.dtype)[..., tf.newaxis, tf.newaxis]
            return factor * by_matrix, tf.cast(tf.math.real(by_weight), weight.dtype)

        return value, gradient

    return differentiable(matrix, weight)


def _inverse_of_array(array: np.ndarray, weight: np.ndarray) -> np.ndarray:
    found = inverse(ArraySource(array, "the tensor"), adjoint=True)
    found *= weight[..., np.newaxis, np.newaxis].astype(found.dtype)
    return found.astype(array.dtype, copy=False)


def _tensor_on(tf: Any, array: np.ndarray) -> Any:
    """A tensor in the array's own memory, where that is aligned as TensorFlow needs it."""
    if array.ctypes.data % 64 or array.size == 0 or array.dtype.name not in _SHARED:
        return tf.constant(array)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


_SHARED: Final = ("float32", "float64", "complex64", "complex128")


def _tensors(tf: Any, outcome: Outcome, dtype: Any) -> tuple[Any, Any]:
    if outcome.tensors is not None and outcome.tensors[0].dtype == dtype:
        sign, logabs = (tf.reshape(part, outcome.shape) for part in outcome.tensors)
        return sign, logabs
    return tf.constant(outcome.sign, dtype), tf.constant(outcome.logabs, dtype.real_dtype)


def _with_rounding(outcome: Outcome, real: np.dtype[Any]) -> np.ndarray:
    """The error bar of logarithms that are rounded to the tensor's own type."""
    if outcome.error.dtype == np.float32 == real:
        return outcome.error  # compiled stacks have it in already
    logabs = np.where(np.isfinite(outcome.logabs), np.abs(outcome.logabs), 0.0)
    half = 0.5 * float(_precision(real)) if real != np.float64 else 0.0
    return outcome.error + half * logabs


def _precision(real: np.dtype[Any]) -> float:
    if real.name == "bfloat16":
        return 2.0**-7
    return float(np.finfo(real).eps)
