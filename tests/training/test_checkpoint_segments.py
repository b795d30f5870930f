"""checkpoint_segments: the same training with less kept, whatever the graph of layers."""

import gc

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from keras import layers  # noqa: E402
from tensorflow.python.framework import config  # noqa: E402
from tests.accuracy.checkpoint import largest_difference  # noqa: E402

from snugly.errors import InputError  # noqa: E402
from snugly.training import checkpoint_segments, undo_checkpoint  # noqa: E402

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def _same_sums():
    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(1)
    yield
    keras.config.set_dtype_policy("float32")
    config.disable_op_determinism()
    keras.backend.clear_session()
    gc.collect()


def transformer(depth=2):
    inputs = keras.Input((12,), dtype="int32")
    x = layers.Dropout(0.1)(layers.Embedding(50, 16, mask_zero=True)(inputs))
    for _ in range(depth):
        attended = layers.MultiHeadAttention(2, 8, dropout=0.1)(x, x)
        x = layers.LayerNormalization()(x + layers.Dropout(0.1)(attended))
        x = layers.LayerNormalization()(x + layers.Dense(16)(layers.Dense(32, "gelu")(x)))
    return keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


def trained_weights(model, x, y, *, steps=2, **options):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.01), loss, **options)
    for _ in range(steps):
        model.train_on_batch(x, y)
    return [np.array(weight) for weight in model.get_weights()]


@pytest.mark.parametrize("name", ["MobileNetV2", "ResNet50"])
def test_gradients_of_families_are_those_of_the_plain_model(name):
    # All of them: `python -m tests.accuracy.checkpoint`.
    keras.config.set_dtype_policy("float64")
    assert largest_difference(name) <= 1e-6


@pytest.mark.parametrize("eager", [False, True])
def test_a_transformer_trains_the_same(eager):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 50, (4, 12)), np.array([0, 1, 2, 0])
    results = []
    for segments in (None, 3):
        keras.utils.set_random_seed(2)
        model = transformer()
        model = model if segments is None else checkpoint_segments(model, segments)
        results.append(trained_weights(model, x, y, run_eagerly=eager))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("graph", [False, True])
def test_masks_that_attention_takes_off_are_there_in_the_second_pass(graph):
    """Keras's attention takes the masks off the tensors it is called with, for all later users."""
    keras.config.set_dtype_policy("float64")
    entry = keras.Input((6,), dtype="int32")
    tokens = layers.Embedding(10, 8, mask_zero=True, name="tokens")(entry)
    attended = layers.MultiHeadAttention(2, 4, name="attention")(tokens, tokens)
    beside = layers.LSTM(3)(tokens)
    model = keras.Model(entry, layers.Dense(2)(layers.Concatenate()([beside, attended[:, 0]])))
    x = tf.constant([[1, 2, 0, 0, 0, 0], [3, 1, 2, 1, 0, 0]])

    def gradients(model):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x, training=True) ** 2)
        weights = [weight.value for weight in model.trainable_weights]
        return [tf.convert_to_tensor(each) for each in tape.gradient(loss, weights)]

    taken = tf.function(gradients) if graph else gradients
    small = checkpoint_segments(model, [["tokens"], ["attention"]])
    for a, b in zip(taken(model), taken(small), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-12)


# Copying a variable warns so in Keras 3.15 with NumPy 2.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_weights_are_shared_and_the_given_model_stays_plain(tmp_path):
    model = keras.Sequential([keras.Input((8,)), layers.Dense(8, "relu"), layers.Dense(2)])
    model.compile("adam", "mse")
    small = checkpoint_segments(model, [[model.layers[0]]])
    assert [id(v) for v in small.variables] == [id(v) for v in model.variables]
    assert small.optimizer is model.optimizer
    x = np.ones((4, 8), "float32")
    before = model.get_weights()[0].copy()
    small.fit(x, np.zeros((4, 2)), verbose=0)
    assert np.any(model.get_weights()[0] != before)
    small.save(tmp_path / "small.keras")
    loaded = keras.models.load_model(tmp_path / "small.keras")
    np.testing.assert_allclose(loaded(x).numpy(), model(x).numpy(), rtol=1e-6)
    assert "call" not in model.__dict__
    undo_checkpoint(small)
    assert "call" not in small.__dict__


def two_paths():
    a = keras.Input((4,), name="a")
    b = keras.Input((4,), name="b")
    left = layers.Dense(4, name="left")(a)
    middle = layers.Dense(4, name="middle")(left)
    right = layers.Dense(4, name="right")(b)
    joined = layers.Concatenate(name="joined")([middle, right, left])
    return keras.Model({"a": a, "b": b}, {"y": layers.Dense(1, name="y")(joined), "mid": middle})


def test_several_inputs_and_outputs_and_layers_between():
    model = two_paths()
    # WHEN a segment is given with a layer missing in its middle THEN that is taken into it
    small = checkpoint_segments(model, [["left", "joined"]])
    steps = small.__dict__["call"].steps
    (inside,) = [step for step in steps if step.recomputed]
    assert {node.operation.name for node in inside.nodes} == {"left", "middle", "joined"}
    data = {"a": np.ones((2, 4), "float32"), "b": np.ones((2, 4), "float32")}
    expected, found = model(data, training=True), small(data, training=True)
    assert found.keys() == expected.keys() == {"y", "mid"}
    np.testing.assert_allclose(found["y"], expected["y"])
    small.compile("sgd", {"y": "mse", "mid": "mse"})
    small.fit(data, {"y": np.zeros((2, 1)), "mid": np.zeros((2, 4))}, verbose=0)


@pytest.mark.parametrize(
    ("segments", "code"),
    [
        ([["left"], ["left"]], "SNG546"),
        ([["nobody"]], "SNG546"),
        ([[layers.Dense(3)]], "SNG546"),
        (0, "SNG546"),
        ([["middle"], ["left", "joined"]], "SNG547"),
    ],
)
def test_segments_that_do_not_fit_are_refused(segments, code):
    with pytest.raises(InputError) as refused:
        checkpoint_segments(two_paths(), segments)
    assert refused.value.code == code


def test_models_without_a_graph_are_refused():
    class Own(keras.Model):
        def call(self, x):
            return x

    for model in (Own(), keras.Sequential([layers.Dense(2)])):
        with pytest.raises(InputError) as refused:
            checkpoint_segments(model, 2)
        assert refused.value.code == "SNG546"
