"""Linear algebra, Fourier transforms, Jacobians: plain `tf.function`s with large temporaries."""

from __future__ import annotations

from typing import Any

from tests.accuracy.zoo.program import HELD_OUT, Array, function

DEFINITE = Array((None, 128, 128), content="definite")


@function("svd", (2, 4, 8), (Array((None, 128, 96)),))
def _svd() -> Any:
    import tensorflow as tf

    return tf.function(tf.linalg.svd)


@function("cholesky", (4, 16, 32), (DEFINITE,))
def _cholesky() -> Any:
    import tensorflow as tf

    return tf.function(lambda a: tf.linalg.cholesky(a) * 2.0)


@function("solve", (4, 16, 32), (DEFINITE, Array((None, 128, 16))))
def _solve() -> Any:
    import tensorflow as tf

    return tf.function(tf.linalg.solve)


@function("det", (4, 16, 32), (DEFINITE,))
def _det() -> Any:
    import tensorflow as tf

    return tf.function(lambda a: (tf.linalg.det(a), tf.linalg.slogdet(a), tf.linalg.inv(a)))


@function("qr-eigh", (4, 8, 16), (DEFINITE,))
def _qr_eigh() -> Any:
    import tensorflow as tf

    return tf.function(
        lambda a: (tf.linalg.qr(a), tf.linalg.eigh(a), tf.linalg.triangular_solve(a, a))
    )


@function("fft", (16, 64, 128), (Array((None, 64, 64), "complex64"),))
def _fft() -> Any:
    import tensorflow as tf

    return tf.function(lambda x: tf.abs(tf.signal.ifft2d(tf.signal.fft2d(x) * 2.0)))


@function("rfft-stft", (4, 16, 32), (Array((None, 16000)),), HELD_OUT)
def _rfft_stft() -> Any:
    import tensorflow as tf

    return tf.function(lambda x: tf.abs(tf.signal.stft(x, 400, 160)))


@function("jacobian", (16, 32, 64), (Array((None, 64)), Array((64, 64))))
def _jacobian() -> Any:
    import tensorflow as tf

    @tf.function
    def jacobian(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.tanh(tf.matmul(x, w))
        return tape.batch_jacobian(y, x)

    return jacobian


@function("distances", (256, 512, 1024), (Array((None, 64)),))
def _distances() -> Any:
    """All pairs by broadcasting: the classic that needs N² × 64 values for N² results."""
    import tensorflow as tf

    @tf.function
    def distances(x: Any) -> Any:
        return tf.sqrt(tf.reduce_sum((x[:, None, :] - x[None, :, :]) ** 2, -1) + 1e-6)

    return distances


@function(
    "float64",
    (128, 256, 512),
    (Array((None, 300), "float64"), Array((300, 300), "float64")),
    HELD_OUT,
)
def _float64() -> Any:
    import tensorflow as tf

    @tf.function
    def compute(x: Any, w: Any) -> Any:
        y = tf.matmul(x, w)
        return tf.cast(tf.nn.log_softmax(y), tf.float32), tf.linalg.norm(y, axis=1)

    return compute
