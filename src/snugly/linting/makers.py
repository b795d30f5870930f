"""Makers: which functions make a tensor or an array, and where they take its shape and type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

DTYPE_BYTES: Final = {
    **dict.fromkeys(("bool", "int8", "uint8", "qint8", "quint8", "float8_e5m2"), 1),
    **dict.fromkeys(("float8_e4m3fn", "bool_"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16", "half"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "single", "intc"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "double", "complex64", "int_", "float_"), 8),
    "complex128": 16,
}


@dataclass(frozen=True, slots=True)
class Maker:
    """Where a function takes the shape and the type of what it makes."""

    shape_place: int
    dtype_place: int | None
    dtype: str
    form: Literal["shape", "dimensions", "square"] = "shape"


def _all(names: tuple[str, ...], maker: Maker) -> dict[str, Maker]:
    return dict.fromkeys(names, maker)


# Signatures of TensorFlow 2.21, Keras 3.15 and NumPy 2.
MAKERS: Final[dict[str, Maker]] = {
    **_all(("tf.zeros", "tf.ones", "tf.empty"), Maker(0, 1, "float32")),
    **_all(("tf.fill", "tf.full"), Maker(0, 2, "float32")),
    "tf.eye": Maker(0, 3, "float32", "square"),
    **_all(
        (
            *("tf.random.normal", "tf.random.uniform", "tf.random.truncated_normal"),
            *("tf.random_normal", "tf.random_uniform", "tf.truncated_normal"),
        ),
        Maker(0, 3, "float32"),
    ),
    **_all(("tf.random.stateless_normal", "tf.random.stateless_uniform"), Maker(0, 4, "float32")),
    **_all(("tf.random.gamma", "tf.random.poisson"), Maker(0, 3, "float32")),
    **_all(
        ("keras.random.normal", "keras.random.uniform", "keras.random.truncated_normal"),
        Maker(0, 3, "float32"),
    ),
    **_all(("np.zeros", "np.ones", "np.empty"), Maker(0, 1, "float64")),
    "np.full": Maker(0, 2, "float64"),
    "np.eye": Maker(0, 3, "float64", "square"),
    "np.identity": Maker(0, 1, "float64", "square"),
    **_all(("np.random.rand", "np.random.randn"), Maker(0, None, "float64", "dimensions")),
    **_all(
        (
            *("np.random.random", "np.random.random_sample", "np.random.ranf"),
            *("np.random.sample", "np.random.standard_normal"),
        ),
        Maker(0, None, "float64"),
    ),
    **_all(
        ("np.random.uniform", "np.random.normal", "np.random.binomial"), Maker(2, None, "float64")
    ),
    **_all(("np.random.exponential", "np.random.poisson"), Maker(1, None, "float64")),
    "np.random.randint": Maker(2, 3, "int64"),
}

GENERATOR_MAKERS: Final[dict[str, Maker]] = {
    **_all(("random", "standard_normal"), Maker(0, 1, "float64")),
    **_all(("rand", "randn"), Maker(0, None, "float64", "dimensions")),
    **_all(("normal", "uniform"), Maker(2, None, "float64")),
    **_all(("integers", "randint"), Maker(2, 3, "int64")),
}
"""Methods of `np.random.default_rng()` and `RandomState()`."""

KEEPING: Final = frozenset(
    {
        *("identity", "abs", "exp", "log", "sqrt", "square", "sin", "cos", "tanh", "sigmoid"),
        *("nn.relu", "nn.softmax", "nn.gelu", "sign", "negative", "floor", "ceil", "round"),
        *("clip_by_value", "clip", "zeros_like", "ones_like", "stop_gradient", "sort", "copy"),
        *("ascontiguousarray", "maximum_accumulate", "random.shuffle", "random.permutation"),
    }
)
"""Functions whose result has the shape and type of their first argument."""
