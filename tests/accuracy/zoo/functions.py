"""Plain `tf.function`s: control flow, gathers, reductions, attention, image ops.

`N` stands for the batch size in the comments; every `None` of an input's shape becomes it.
"""

from __future__ import annotations

from typing import Any

from tests.accuracy.zoo.program import HELD_OUT, Array, function

MATRIX = Array((None, 512))
SQUARE = Array((512, 512))
IMAGE = Array((None, 64, 64, 16))


@function("matmul-chain", (128, 512, 1024), (MATRIX, SQUARE))
def _matmul_chain() -> Any:
    import tensorflow as tf

    @tf.function
    def chain(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = tf.nn.relu(tf.matmul(x, w))
        return x

    return chain


@function("matmul-gradient", (128, 512, 1024), (MATRIX, SQUARE))
def _matmul_gradient() -> Any:
    import tensorflow as tf

    @tf.function
    def gradient(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = x
            for _ in range(3):
                y = tf.tanh(tf.matmul(y, w))
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, w)

    return gradient


@function("matmul-broadcast", (8, 16, 32), (Array((None, 1, 128, 64)), Array((1, 8, 64, 128))))
def _matmul_broadcast() -> Any:
    import tensorflow as tf

    return tf.function(lambda a, b: tf.nn.softmax(tf.matmul(a, b) + 1.0))


@function("einsum-attention", (2, 4, 8), (Array((None, 128, 8, 32)),) * 3)
def _einsum_attention() -> Any:
    import tensorflow as tf

    @tf.function
    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k) / 5.65)
        return tf.einsum("bhqk,bkhd->bqhd", scores, v)

    return attention


@function("einsum-attention-gradient", (2, 4, 8), (Array((None, 96, 4, 40)),) * 3, HELD_OUT)
def _einsum_attention_gradient() -> Any:
    import tensorflow as tf

    @tf.function
    def gradient(q: Any, k: Any, v: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([q, k, v])
            scores = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k))
            out = tf.einsum("bhqk,bkhd->bqhd", scores, v)
        return tape.gradient(out, [q, k, v])

    return gradient


@function("while-tensorarray", (64, 256, 512), (MATRIX, SQUARE))
def _while_tensorarray() -> Any:
    import tensorflow as tf

    @tf.function
    def loop(x: Any, w: Any) -> Any:
        states = tf.TensorArray(tf.float32, size=10)

        def body(i: Any, state: Any, states: Any) -> Any:
            state = tf.tanh(tf.matmul(state, w))
            return i + 1, state, states.write(i, state)

        _, _, states = tf.while_loop(lambda i, *_: i < 10, body, (0, x, states))
        return states.stack()

    return loop


@function("while-gradient", (64, 256, 512), (MATRIX, SQUARE))
def _while_gradient() -> Any:
    import tensorflow as tf

    @tf.function
    def gradient(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(w)
            state = x
            for _ in tf.range(8):
                state = tf.tanh(tf.matmul(state, w))
            loss = tf.reduce_sum(state)
        return tape.gradient(loss, w)

    return gradient


@function("while-scan", (64, 256, 512), (Array((12, None, 128)),), HELD_OUT)
def _while_scan() -> Any:
    import tensorflow as tf

    return tf.function(lambda x: tf.scan(lambda total, row: total * 0.9 + row, x))


@function("map_fn", (16, 64, 128), (Array((None, 128, 128)),))
def _map_fn() -> Any:
    import tensorflow as tf

    return tf.function(lambda x: tf.map_fn(lambda a: tf.matmul(a, a, transpose_b=True), x))


@function("cond", (128, 512, 1024), (MATRIX,))
def _cond() -> Any:
    import tensorflow as tf

    @tf.function
    def branch(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x) + tf.sin(x), lambda: x)

    return branch


@function("elementwise", (256, 1024, 4096), (MATRIX, MATRIX))
def _elementwise() -> Any:
    import tensorflow as tf

    return tf.function(lambda a, b: tf.sqrt(tf.exp(a) * b + tf.sin(a - b)) / (1.0 + tf.abs(b)))


@function("reduce", (256, 1024, 4096), (MATRIX,))
def _reduce() -> Any:
    import tensorflow as tf

    @tf.function
    def reduce(x: Any) -> Any:
        rows, columns = tf.reduce_mean(x, 0), tf.reduce_max(x, 1)
        return tf.math.reduce_std(x), rows, columns, tf.reduce_logsumexp(x, 1), tf.argmax(x, 1)

    return reduce


@function("sort-top_k", (256, 1024, 4096), (MATRIX,))
def _sort_top_k() -> Any:
    import tensorflow as tf

    @tf.function
    def order(x: Any) -> Any:
        return tf.sort(x, axis=-1), tf.math.top_k(x, 50).values, tf.argsort(x, axis=0)

    return order


@function("cumsum", (256, 1024, 4096), (MATRIX,))
def _cumsum() -> Any:
    import tensorflow as tf

    return tf.function(lambda x: tf.cumsum(x, 1) + tf.math.cumprod(x, 0))


@function("gather-scatter", (256, 1024, 4096), (Array((5000, 256)), Array((None,), "int32", 5000)))
def _gather_scatter() -> Any:
    import tensorflow as tf

    @tf.function
    def move(table: Any, rows: Any) -> Any:
        picked = tf.gather(table, rows) * 2.0
        return tf.tensor_scatter_nd_add(table, rows[:, None], picked), tf.scatter_nd(
            rows[:, None], picked, (5000, 256)
        )

    return move


@function("segment_sum", (1024, 4096, 8192), (Array((None, 128)), Array((None,), "int32", 100)))
def _segment_sum() -> Any:
    import tensorflow as tf

    @tf.function
    def segments(x: Any, ids: Any) -> Any:
        return tf.math.segment_sum(x, tf.sort(ids)), tf.math.unsorted_segment_mean(x, ids, 100)

    return segments


@function("concat-split", (256, 1024, 2048), (MATRIX, MATRIX))
def _concat_split() -> Any:
    import tensorflow as tf

    @tf.function
    def shuffle(a: Any, b: Any) -> Any:
        first, second = tf.split(tf.concat([a, b], 1), 2, axis=0)
        pile = tf.unstack(tf.stack([first, second, first * 2.0], axis=1), axis=1)
        return tf.concat(pile, 0), tf.transpose(a), tf.tile(b, (1, 2)), tf.pad(a, ((1, 1), (2, 2)))

    return shuffle


@function("resize", (4, 16, 32), (Array((None, 64, 64, 3)),))
def _resize() -> Any:
    import tensorflow as tf

    @tf.function
    def resize(x: Any) -> Any:
        return (
            tf.image.resize(x, (128, 128)),
            tf.image.resize(x, (32, 32), method="nearest"),
            tf.image.flip_left_right(x),
        )

    return resize


@function("one_hot-where", (256, 1024, 4096), (Array((None,), "int32", 1000), Array((None, 1000))))
def _one_hot_where() -> Any:
    import tensorflow as tf

    @tf.function
    def select(ids: Any, logits: Any) -> Any:
        chosen = tf.where(tf.one_hot(ids, 1000) > 0, logits, tf.zeros_like(logits))
        return tf.reduce_sum(chosen, 1), tf.clip_by_value(logits, 0.2, 0.8)

    return select


@function("boolean_mask", (256, 1024, 4096), (MATRIX,))
def _boolean_mask() -> Any:
    import tensorflow as tf

    return tf.function(lambda x: tf.boolean_mask(x, tf.reduce_sum(x, 1) > 256.0) * 3.0)


@function("conv2d", (4, 16, 32), (IMAGE, Array((3, 3, 16, 32))))
def _conv2d() -> Any:
    import tensorflow as tf

    return tf.function(lambda x, w: tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME")))


@function("conv2d-gradient", (4, 16, 32), (IMAGE, Array((5, 5, 16, 24))))
def _conv2d_gradient() -> Any:
    import tensorflow as tf

    @tf.function
    def gradient(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, w, 2, "VALID")), 2, 2, "SAME")
        return tape.gradient(y, [x, w])

    return gradient


@function("depthwise", (4, 16, 32), (IMAGE, Array((3, 3, 16, 2))))
def _depthwise() -> Any:
    import tensorflow as tf

    return tf.function(lambda x, w: tf.nn.depthwise_conv2d(x, w, (1, 1, 1, 1), "SAME") + 1.0)


@function("dilated-transposed", (4, 8, 16), (IMAGE, Array((3, 3, 16, 16))), HELD_OUT)
def _dilated_transposed() -> Any:
    import tensorflow as tf

    @tf.function
    def convolve(x: Any, w: Any) -> Any:
        y = tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME", dilations=2))
        shape = tf.stack([tf.shape(y)[0], 128, 128, 16])
        return tf.nn.conv2d_transpose(y, w, shape, 2)

    return convolve


@function("embedding-gradient", (256, 1024, 4096), (Array((None, 8), "int32", 5000),))
def _embedding_gradient() -> Any:
    """The gradient of a gather is an IndexedSlices, applied without being densified."""
    import tensorflow as tf

    table = tf.Variable(tf.random.normal((5000, 64)))

    @tf.function
    def train(ids: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.reduce_mean(tf.nn.embedding_lookup(table, ids), 1) ** 2)
        slices = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(0.01 * slices.values, slices.indices))
        return loss

    return train


@function(
    "ragged-like-mask",
    (64, 256, 512),
    (Array((None, 100, 64)), Array((None,), "int32", 100)),
    HELD_OUT,
)
def _ragged_like_mask() -> Any:
    import tensorflow as tf

    @tf.function
    def pool(x: Any, lengths: Any) -> Any:
        mask = tf.sequence_mask(lengths, 100, tf.float32)[..., None]
        return tf.reduce_sum(x * mask, 1) / tf.maximum(tf.reduce_sum(mask, 1), 1.0)

    return pool
