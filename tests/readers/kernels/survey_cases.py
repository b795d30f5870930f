"""Small programs, each around one operator, for `survey_child.py` to run.

Every operand is made fresh inside the program, so that a kernel could take its buffer. No program
has two consumers of one tensor whose order matters: what each kernel allocates is then certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Callable

raw = tf.raw_ops
Spec = tuple[tuple[int, ...], str, int]  # shape, type, and for whole numbers the limit


@dataclass(frozen=True)
class Case:
    """`given` operands reach the operator as they are, held by the caller."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Spec, ...]
    given: tuple[int, ...] = ()


CASES: list[Case] = []


def floats(*shape: int, dtype: str = "float32") -> Spec:
    return shape, dtype, 0


def numbers(limit: int, *shape: int, dtype: str = "int32") -> Spec:
    return shape, dtype, limit


def booleans(*shape: int) -> Spec:
    return shape, "bool", 0


def case(
    name: str, function: Callable[..., Any], *inputs: Spec, given: tuple[int, ...] = ()
) -> None:
    CASES.append(Case(name, function, inputs, given))


def gradient(function: Callable[..., Any], of: int = 0) -> Callable[..., Any]:
    """The gradient by one operand, its upstream computed from the result so that nothing folds."""

    def backward(*operands: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(operands[of])
            result = function(*operands)
        return tape.gradient(result, operands[of], output_gradients=result * 0.5)

    return backward


MATRIX = floats(256, 300)
ROW = floats(300)

# Element by element.
for name in ("exp", "tanh", "erf", "sigmoid", "floor", "square", "conj", "is_nan", "softplus"):
    case(f"unary {name}", getattr(tf.math, name), MATRIX)
for name in ("add", "multiply", "divide", "maximum", "pow", "less", "squared_difference", "xlogy"):
    case(f"binary {name}", getattr(tf.math, name), MATRIX, MATRIX)
    case(f"binary {name} row first", getattr(tf.math, name), ROW, MATRIX)
case("both broadcast", tf.add, floats(256, 1), floats(1, 300))
case("add three", lambda x, y, z: tf.add_n([x, y, z]), MATRIX, MATRIX, MATRIX)
case("select", tf.where, booleans(256, 300), MATRIX, MATRIX)
case("select scalar", lambda c, x: tf.where(c, 0.0, x), booleans(256, 300), MATRIX)
case("bias", tf.nn.bias_add, MATRIX, ROW)
case("relu gradient", lambda g, x: raw.ReluGrad(gradients=g, features=x), MATRIX, MATRIX)
case("cast to int", lambda x: tf.cast(x, tf.int32), MATRIX)
case("bitcast", lambda x: tf.bitcast(x, tf.int32), MATRIX)
case(
    "complex parts", lambda x: (tf.math.real(x), tf.math.imag(x)), floats(99, 99, dtype="complex64")
)

# Reductions.
CUBE = floats(32, 60, 40)
for axes in (None, 0, 1, 2, (0, 2), (0, 1)):
    case(f"sum {axes}", lambda x, axes=axes: tf.reduce_sum(x, axes), CUBE)
for axes in ((0, 2), (1, 3)):  # the last two alternate four times: a transposed copy
    case(f"max {axes} of 4", lambda x, axes=axes: tf.reduce_max(x, axes), floats(8, 20, 30, 40))
case("mean of nothing", lambda x: tf.reduce_mean(x, 1), floats(60000, 1))
case("norm of nothing", lambda x: tf.math.reduce_euclidean_norm(x, 1), floats(60000, 1))
case("cumulative sum", lambda x: tf.cumsum(x, 0), MATRIX)
case("histogram", lambda x: tf.histogram_fixed_width(x, [0.0, 1.0]), MATRIX)
case(
    "bincount",
    lambda x: raw.Bincount(arr=x, size=1000, weights=tf.zeros(0)),
    numbers(1000, 80000),
)

# Products.
for dtype in ("float32", "float16", "bfloat16"):
    case(
        f"matmul {dtype}",
        tf.matmul,
        floats(256, 300, dtype=dtype),
        floats(300, 200, dtype=dtype),
    )
    case(
        f"batch matmul {dtype}",
        tf.matmul,
        floats(8, 64, 60, dtype=dtype),
        floats(8, 60, 70, dtype=dtype),
    )
LEFT, RIGHT = floats(8, 64, 100), floats(8, 100, 64)
case("left transposed", lambda x, y: tf.matmul(x, y, transpose_a=True), RIGHT, RIGHT)
case("right transposed", lambda x, y: tf.matmul(x, y, transpose_b=True), LEFT, LEFT)
case(
    "one product, deep",
    tf.matmul,
    floats(1, 64, 700),
    floats(1, 700, 512),
)
for equation, shapes in {
    "ab,bc->ac": ((256, 300), (300, 200)),
    "ab,bc->ca": ((256, 300), (300, 200)),
    "abc,cde->abde": ((16, 40, 64), (64, 8, 16)),
    "aecd,abcd->acbe": ((8, 60, 4, 32), (8, 60, 4, 32)),
    "acbe,aecd->abcd": ((8, 4, 60, 60), (8, 60, 4, 32)),
    "...ab,...bc->...ac": ((4, 8, 20, 30), (4, 8, 30, 40)),
    "abc->acb": ((16, 40, 64),),
    "abc->ab": ((16, 40, 64),),
    "aab->ab": ((40, 40, 64),),
    "abc->abc": ((16, 40, 64),),
}.items():
    case(
        f"einsum {equation}",
        lambda *x, equation=equation: tf.einsum(equation, *x),
        *(floats(*shape) for shape in shapes),
    )

# Neural.
IMAGES, FILTERS = floats(8, 32, 32, 16), floats(3, 3, 16, 24)
for stride in (1, 2):

    def convolve(x: Any, w: Any, stride: int = stride) -> Any:
        return tf.nn.conv2d(x, w, stride, "SAME")

    case(f"conv {stride}", convolve, IMAGES, FILTERS)
    case(f"conv {stride} input gradient", gradient(convolve), IMAGES, FILTERS)
    case(f"conv {stride} filter gradient", gradient(convolve, 1), IMAGES, FILTERS)
case("grouped conv", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), IMAGES, floats(3, 3, 4, 24))
case(
    "conv transposed",
    lambda x, w: tf.nn.conv2d_transpose(x, w, (8, 64, 64, 24), 2, "SAME"),
    IMAGES,
    floats(3, 3, 24, 16),
)
case(
    "conv half gradient",
    gradient(lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), 1),
    floats(8, 32, 32, 16, dtype="float16"),
    floats(3, 3, 16, 24, dtype="float16"),
)
case(
    "depthwise",
    lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
    IMAGES,
    floats(3, 3, 16, 1),
)
case("max pool", lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"), IMAGES)
case("max pool 3d", lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME"), floats(4, 12, 16, 16, 8))
case("average pool gradient", gradient(lambda x: tf.nn.avg_pool2d(x, 2, 2, "SAME")), IMAGES)
case("softmax", tf.nn.softmax, MATRIX)
case(
    "cross entropy",
    lambda x, y: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y),
    MATRIX,
    MATRIX,
)
case(
    "sparse cross entropy",
    lambda x, y: raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y),
    MATRIX,
    numbers(300, 256, dtype="int64"),
    given=(1,),
)

# Shapes.
ALIGNED, UNALIGNED = floats(64, 32), floats(64, 33)
for name, rows in (("aligned", ALIGNED), ("unaligned", UNALIGNED)):
    case(f"first rows {name}", lambda x: x[3:40], rows)
    case(f"one row {name}", lambda x: x[5], rows)
    case(f"rows by slice {name}", lambda x: tf.slice(x, [3, 0], [40, -1]), rows)
    case(f"split {name}", lambda x: tf.split(x, 4, 0), rows)
    case(f"split at {name}", lambda x: tf.split(x, [10, 54], 0), rows)
    case(f"unstack {name}", lambda x: tf.unstack(x, axis=0), rows)
case("columns", lambda x: x[:, 2:9], ALIGNED)
case("every other row", lambda x: x[::2], ALIGNED)
case("everything", lambda x: x[:, None], ALIGNED)
case("list aligned", lambda x: x[16:64], floats(1024))
case("list unaligned", lambda x: x[3:64], floats(1024))
case("transpose", tf.transpose, MATRIX)
case("transpose nothing", lambda x: tf.transpose(x, (1, 0, 2)), floats(1, 200, 300))
case("concat", lambda x, y: tf.concat([x, y], 1), MATRIX, MATRIX)
case("stack one", lambda x: tf.stack([x]), MATRIX)
case("pad", lambda x: tf.pad(x, [[1, 1], [2, 2]]), MATRIX)
case("pad nothing", lambda x: tf.pad(x, [[0, 0], [0, 0]]), MATRIX)
case("mirror pad gradient", gradient(lambda x: tf.pad(x, [[1, 1], [2, 2]], "REFLECT")), MATRIX)
case("tile nothing", lambda x: tf.tile(x, [1, 1]), MATRIX)
case("broadcast nothing", lambda x: tf.broadcast_to(x, (256, 300)), MATRIX)
case("gather", tf.gather, MATRIX, numbers(256, 300), given=(1,))
case("top k", lambda x: tf.math.top_k(x, 5), MATRIX)
case("reshape", lambda x: tf.reshape(x, (-1, 100)), MATRIX)

# Linear algebra, images, random numbers, sparse.
SQUARES = floats(8, 60, 60)
for name in ("inv", "qr", "svd", "lu", "det"):
    case(f"linalg {name}", getattr(tf.linalg, name), SQUARES)
case("qr tall", tf.linalg.qr, floats(4, 80, 60))
case("solve", tf.linalg.solve, SQUARES, floats(8, 60, 40))
case("band", lambda x: tf.linalg.band_part(x, 3, 0), SQUARES)
case("fourier", tf.signal.rfft, floats(64, 1024))
case("hsv", tf.image.rgb_to_hsv, floats(4, 64, 64, 3))
case("resize", lambda x: tf.image.resize(x, (50, 50)), IMAGES)
case("resize smooth", lambda x: tf.image.resize(x, (20, 20), antialias=True), IMAGES)
case("uniform", lambda x: tf.random.uniform((256, 300)) * x, floats())
INDICES = np.stack([np.repeat(np.arange(200), 10), np.tile(np.arange(0, 300, 30), 200)], 1)
case(
    "sparse times dense",
    lambda x, y: (tf.SparseTensor(INDICES.astype("int64"), x, (200, 300)) * y).values,
    floats(2000),
    floats(200, 300),
)
