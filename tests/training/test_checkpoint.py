"""checkpoint: the same numbers as without, each change once, and the inside not kept."""

import copy

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from keras import layers, ops  # noqa: E402
from tensorflow.python.framework import config  # noqa: E402

from snugly.errors import InputError  # noqa: E402
from snugly.training import checkpoint, is_checkpointed, undo_checkpoint  # noqa: E402

pytestmark = pytest.mark.tensorflow

IMAGES = np.random.default_rng(0).normal(size=(4, 8, 8, 3)).astype("float32")
ROWS = np.random.default_rng(1).normal(size=(4, 16)).astype("float32")
SEQUENCES = np.random.default_rng(2).normal(size=(4, 5, 6)).astype("float32")


class WithoutTrainingArgument(layers.Layer):
    """Its parts learn from Keras's call context that they are training; it adds a loss."""

    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(16)
        self.dropout = layers.Dropout(0.5)
        self.normal = layers.LayerNormalization()

    def build(self, shape):
        self.dense.build(shape)
        self.normal.build(shape)

    def call(self, x):
        y = self.normal(self.dropout(self.dense(x)))
        self.add_loss(0.1 * ops.sum(y**2))
        return y


class DropoutInCell(layers.Layer):
    """Draws a mask in every turn of a loop."""

    def __init__(self):
        super().__init__()
        self.state_size = self.output_size = 6
        self.dense = layers.Dense(6)
        self.dropout = layers.Dropout(0.5)

    def build(self, shape):
        self.dense.build(shape)

    def call(self, x, states, training=None):
        state = self.dropout(self.dense(x) + states[0], training=training)
        return state, [state]


class CompiledCall(layers.Layer):
    """Its `call` is a tf.function, whose inside is out of sight."""

    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(16)
        self.dropout = layers.Dropout(0.5)
        self.normal = layers.BatchNormalization()

    def build(self, shape):
        self.dense.build(shape)
        self.normal.build(shape)

    @tf.function
    def call(self, x, training=None):
        return self.normal(self.dropout(self.dense(x), training=training), training=training)


def attention():
    inputs = keras.Input((5, 6))
    attended = layers.MultiHeadAttention(2, 4, dropout=0.2)(inputs, inputs, use_causal_mask=True)
    return keras.Model(inputs, layers.LayerNormalization()(inputs + attended))


def shared():
    inputs = keras.Input((16,))
    twice = layers.Dense(16, kernel_regularizer="l2", activity_regularizer="l2")
    hidden = layers.Dropout(0.3)(layers.add([twice(twice(inputs)), inputs]))
    return keras.Model(inputs, [hidden, layers.Dense(2)(hidden)])


def nested():
    inner = keras.Sequential([layers.Dense(16, "silu"), layers.Dropout(0.4)])
    return keras.Sequential([inner, layers.Dense(3), inner.layers[1]])


SUBJECTS = {
    "dropout": (
        lambda: keras.Sequential([layers.Dense(16), layers.Dropout(0.5), layers.Dense(3)]),
        ROWS,
    ),
    "noise": (
        lambda: keras.Sequential(
            [
                layers.Conv2D(4, 3, use_bias=False),
                layers.BatchNormalization(),
                layers.SpatialDropout2D(0.5),
                layers.GaussianNoise(0.3),
                layers.GaussianDropout(0.2),
            ]
        ),
        IMAGES,
    ),
    "augmentation": (
        lambda: keras.Sequential(
            [layers.RandomFlip(), layers.RandomRotation(0.2), layers.Conv2D(3, 3)]
        ),
        IMAGES,
    ),
    "call context and losses": (WithoutTrainingArgument, ROWS),
    "lstm": (lambda: layers.LSTM(7, dropout=0.3, recurrent_dropout=0.2), SEQUENCES),
    "gru": (lambda: layers.Bidirectional(layers.GRU(7, dropout=0.3)), SEQUENCES),
    "dropout in a loop": (lambda: layers.RNN(DropoutInCell()), SEQUENCES),
    "tf.function": (CompiledCall, ROWS),
    "attention": (attention, SEQUENCES),
    "shared": (shared, ROWS),
    "nested": (nested, ROWS),
}


@pytest.fixture(autouse=True)
def _same_sums():
    # Sums are taken in one order, so that two runs can be compared to the last digits.
    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(1)
    yield
    config.disable_op_determinism()
    keras.backend.clear_session()


def steps_of(layer, example, mode, count=2):
    """Losses and gradients of a few steps, and what the layer's variables are after them."""
    example = tf.constant(example)

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = keras.tree.flatten(layer(x, training=True))
            loss = tf.add_n([tf.reduce_sum(y**2) for y in outputs] + layer.losses)
        return loss, tape.gradient(loss, [x, *(v.value for v in layer.trainable_variables)])

    if mode != "eager":
        step = tf.function(step, jit_compile=mode == "compiled")
    return [step(example) for _ in range(count)], [v.numpy() for v in layer.variables]


def worst_difference(expected, found):
    """The largest difference of two structures, relative to the largest entry of each tensor."""
    pairs = list(zip(keras.tree.flatten(expected), keras.tree.flatten(found), strict=True))
    scale = max(float(np.abs(np.asarray(a, "float64")).max()) for a, _ in pairs[:1])
    worst = 0.0
    for a, b in pairs:
        a, b = np.asarray(a, "float64"), np.asarray(b, "float64")  # noqa: PLW2901
        # An entry that is zero but for rounding has no digits to agree in.
        size = max(float(np.abs(a).max()), 1e-2 * scale)
        worst = max(worst, float(np.abs(a - b).max()) / size)
    return worst


def pair(build, example):
    """The same layer twice, once checkpointed, with the same weights and seeds."""
    keras.utils.set_random_seed(1)
    plain = build()
    plain(example)
    keras.utils.set_random_seed(1)
    other = build()
    other(example)
    return plain, checkpoint(other)


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
@pytest.mark.parametrize("name", SUBJECTS)
def test_gradients_and_state_are_those_of_the_plain_layer(name, mode):
    if (name, mode) in {("augmentation", "compiled"), ("dropout in a loop", "eager")}:
        return  # XLA compiles no image transformation; the loop has a test of its own
    build, example = SUBJECTS[name]
    plain, checkpointed = pair(build, example)
    expected = steps_of(plain, example, mode)
    found = steps_of(checkpointed, example, mode)
    # Where there is no graph the plain layer runs operation by operation and the checkpointed one
    # as a function, which fuses some; XLA fuses according to what is kept. Last digits differ.
    tolerance = {"graph": 1e-6, "eager": 5e-6, "compiled": 2e-5}[mode]
    assert worst_difference(expected, found) <= tolerance


def test_the_comparison_can_fail():
    build, example = SUBJECTS["dropout"]
    plain, checkpointed = pair(build, example)
    checkpointed.layers[1].seed_generator.state.assign([7, 7])
    assert (
        worst_difference(*(steps_of(each, example, "graph") for each in (plain, checkpointed)))
        > 0.01
    )


@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_no_dropout_mask_of_a_thousand_differs(mode):
    layer = checkpoint(layers.Dropout(0.5))
    ones = tf.ones([1000])

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
        return y, tape.gradient(y, x)

    step = step if mode == "eager" else tf.function(step, jit_compile=mode == "compiled")
    seen = []
    for _ in range(3):
        forward, backward = step(ones)
        assert np.count_nonzero(forward.numpy() != backward.numpy()) == 0
        seen.append(forward.numpy())
    assert np.any(seen[0] != seen[1])
    assert int(layer.seed_generator.state.numpy()[1]) == 3


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("eager", [False, True])
def test_fit_moves_batch_statistics_once_a_step(eager, compiled):
    if eager and compiled:
        return
    config.disable_op_determinism()  # Keras compiles nothing where it is enabled
    model = keras.Sequential(
        [keras.Input((4,)), checkpoint(layers.BatchNormalization(momentum=0.9))]
    )
    model.compile("sgd", "mse", run_eagerly=eager, jit_compile=compiled)
    model.fit(np.ones((8, 4), "float32"), np.zeros((8, 4)), batch_size=8, verbose=0)
    np.testing.assert_allclose(model.layers[0].moving_mean.numpy(), 0.1, rtol=1e-6)


@pytest.mark.parametrize("draw", ["tf.random", "tf.nn.dropout", "tf.random.Generator", "integers"])
@pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
def test_functions_draw_the_same_numbers_twice(draw, mode):
    generator = tf.random.Generator.from_seed(3)

    def function(x):
        if draw == "tf.random":
            return x * tf.random.normal(x.shape) * tf.random.uniform(x.shape)
        if draw == "tf.nn.dropout":
            return tf.nn.dropout(x, 0.5)
        if draw == "integers":
            return x * tf.cast(tf.random.uniform(x.shape, 0, 9, tf.int32), tf.float32)
        return x * generator.normal(x.shape)

    again = checkpoint(function)

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = again(x)
        return y, tape.gradient(y, x)

    step = step if mode == "eager" else tf.function(step, jit_compile=mode == "compiled")
    first, second = step(tf.ones([1000])), step(tf.ones([1000]))
    # y is x times the drawn numbers, and so is its derivative where x is one.
    np.testing.assert_allclose(first[0], first[1], rtol=1e-6)
    np.testing.assert_allclose(second[0], second[1], rtol=1e-6)
    assert np.any(first[0].numpy() != second[0].numpy())


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_nested_arguments_integers_and_unused_inputs(mode):
    weight = tf.Variable([[2.0, 0.0], [0.0, 3.0]])
    outside = tf.constant([[1.0, 5.0]])

    @checkpoint
    def function(given, scale, *, power=1, flag=None):
        assert flag is None
        hidden = tf.gather(given["x"], given["rows"]) @ weight * outside
        return {"y": hidden**power * scale, "n": given["rows"] + 1}, None

    def step(x, unused):
        with tf.GradientTape() as tape:
            tape.watch([x, unused, outside])
            result, nothing = function(
                {"x": x, "rows": tf.constant([1, 1, 0]), "unused": unused}, 2.0, power=2
            )
            assert nothing is None
            loss = tf.reduce_sum(result["y"])
        return loss, tape.gradient(loss, [x, unused, weight, outside]), result["n"]

    x, unused = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant(1.0)
    _, gradients, numbers = (step if mode == "eager" else tf.function(step))(x, unused)
    with tf.GradientTape() as tape:
        tape.watch([x, outside])
        plain = tf.reduce_sum((tf.gather(x, [1, 1, 0]) @ weight * outside) ** 2 * 2.0)
    expected = tape.gradient(plain, [x, weight, outside])
    assert gradients[1] is None or not np.any(gradients[1])
    for want, have in zip(expected, (gradients[0], gradients[2], gradients[3]), strict=True):
        np.testing.assert_allclose(
            tf.convert_to_tensor(have), tf.convert_to_tensor(want), rtol=1e-6
        )
    assert numbers.numpy().tolist() == [2, 2, 1]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_second_derivatives_are_right(mode):
    weight = tf.Variable(1.5)
    function = checkpoint(lambda x: tf.sin(x * weight) ** 3)

    def second(f, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.gradient(y, x)
        return outer.gradient(first, [x, weight])

    wrap = (lambda f: f) if mode == "eager" else tf.function
    found = wrap(lambda x: second(function, x))(tf.constant(0.7))
    expected = second(function.__wrapped__, tf.constant(0.7))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_masks_go_in_and_come_out():
    def build():
        return keras.Sequential(
            [
                keras.Input((6,), dtype="int32"),
                layers.Embedding(10, 4, mask_zero=True),
                layers.LSTM(5, return_sequences=True),
                layers.LSTM(3),
            ]
        )

    tokens = np.array([[1, 2, 3, 0, 0, 0], [4, 5, 6, 7, 8, 0]])
    plain, other = build(), build()
    other.set_weights(plain.get_weights())
    for layer in other.layers:
        checkpoint(layer)
    for mode in ("eager", "graph"):
        results = []
        for model in (plain, other):

            def step(model=model):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(model(tf.constant(tokens), training=True) ** 2)
                gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
                return loss, [tf.convert_to_tensor(each) for each in gradients]

            results.append((step if mode == "eager" else tf.function(step))())
        assert worst_difference(*results) <= 1e-6


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_trains_the_same(policy):
    results = []
    for checkpointed in (False, True):
        keras.utils.set_random_seed(4)
        block = keras.Sequential(
            [layers.Dense(16, "gelu"), layers.Dropout(0.3), layers.BatchNormalization()],
        )
        block.dtype_policy = policy
        for layer in block.layers:
            layer.dtype_policy = policy
        model = keras.Sequential([keras.Input((16,)), block, layers.Dense(1, dtype="float32")])
        if checkpointed:
            checkpoint(block)
        inner = keras.optimizers.SGD(0.01)
        model.compile(keras.optimizers.LossScaleOptimizer(inner), "mse")
        model.fit(ROWS, ROWS[:, :1], epochs=3, verbose=0, shuffle=False)
        results.append(model.get_weights())
    # On processors with bfloat16 instructions TensorFlow fuses operations whose results nobody
    # keeps, and rounds once where it rounded three times: bfloat16 has 8 bits.
    assert worst_difference(*results) <= (1e-6 if policy == "mixed_float16" else 2**-6)


# Copying a variable warns so in Keras 3.15 with NumPy 2.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_saved_loaded_cloned_and_copied_models_are_plain_and_whole(tmp_path):
    model = keras.Sequential(
        [keras.Input((16,)), layers.Dense(8), layers.Dropout(0.5), layers.Dense(2)]
    )
    for layer in model.layers:
        checkpoint(layer)
    model.compile("adam", "mse")
    model.fit(ROWS, ROWS[:, :2], verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(ROWS, verbose=0), model.predict(ROWS, verbose=0))
    assert not any(is_checkpointed(layer) for layer in loaded.layers)
    loaded.fit(ROWS, ROWS[:, :2], verbose=0)
    keras.models.clone_model(model)(ROWS)
    # A copy of a layer runs on its own weights, not on those of the layer it was copied from.
    twin = copy.deepcopy(model.layers[0])
    twin.kernel.assign(twin.kernel * 0.0)
    with tf.GradientTape():
        np.testing.assert_allclose(twin(ROWS).numpy(), [twin.bias.numpy()] * 4)
    assert undo_checkpoint(model.layers[0]) is model.layers[0]
    assert not is_checkpointed(model.layers[0])


def test_blocks_of_layers_and_functions():
    block = checkpoint([layers.Dense(4), layers.Dropout(0.5), layers.Dense(2)])
    inputs = keras.Input((16,))
    model = keras.Model(inputs, block(inputs))
    model.compile("sgd", "mse")
    model.fit(ROWS, ROWS[:, :2], verbose=0)
    mixed = checkpoint([tf.nn.relu, lambda x: x * 2])
    assert mixed(tf.constant([-1.0, 3.0])).numpy().tolist() == [0.0, 6.0]


def test_a_checkpointed_layer_in_a_checkpointed_model():
    build, example = SUBJECTS["nested"]
    plain, checkpointed = pair(build, example)
    for layer in checkpointed.layers:
        checkpoint(layer)
    for mode in ("eager", "graph", "compiled"):
        found = [steps_of(each, example, mode) for each in (plain, checkpointed)]
        assert worst_difference(*found) <= 1e-6


@pytest.mark.parametrize("subject", [None, 3, "relu", {"a": 1}, [], [3], layers.Dense])
def test_what_is_no_layer_or_function_is_refused(subject):
    with pytest.raises(InputError) as refused:
        checkpoint(subject)
    assert refused.value.code == "SNG540"


def test_variables_made_inside_are_refused():
    def function(x):
        return layers.Dense(3)(x)

    for wrap in (lambda f: f, tf.function):
        with pytest.raises(InputError, match="creates the variable") as refused, tf.GradientTape():
            wrap(checkpoint(function))(tf.constant(ROWS))
        assert refused.value.code == "SNG541"


def test_a_block_that_does_something_else_the_second_time_is_refused():
    calls = []

    def function(x):
        calls.append(1)
        return x * tf.random.normal([]) if len(calls) % 2 else x

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(InputError) as refused:
            tape.gradient(checkpoint(function)(x), x)
    assert refused.value.code == "SNG542"


def test_python_in_a_block_and_symbolic_tensors_are_refused():
    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(InputError) as refused:
            checkpoint(lambda x: tf.py_function(lambda y: y * 2, [x], tf.float32))(x)
    assert refused.value.code == "SNG543"
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(InputError) as refused:
            checkpoint(lambda x: x * x.numpy())(x)
    assert refused.value.code == "SNG545"
    with pytest.raises(InputError) as refused:
        checkpoint(lambda x: x * 2)(keras.Input((3,)))
    assert refused.value.code == "SNG544"


def test_a_draw_in_a_loop_without_a_graph_is_refused_not_guessed():
    layer = layers.RNN(DropoutInCell())
    layer(SEQUENCES)
    with pytest.raises(InputError) as refused:
        steps_of(checkpoint(layer), SEQUENCES, "eager")
    assert refused.value.code == "SNG543"
