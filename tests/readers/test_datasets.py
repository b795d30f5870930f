"""A dataset as an example: read, never drawn from."""

import pytest

import snugly
from snugly.errors import InputError
from snugly.readers.datasets import example_from

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow", reason="needs TensorFlow")


@pytest.fixture(scope="module")
def model():
    keras = pytest.importorskip("keras", reason="needs TensorFlow")
    made = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(4)])
    made.compile("sgd", "sparse_categorical_crossentropy")
    return made


def pairs(tf, count=64):
    """Elements that would fail if anybody drew one."""

    def fail(number):
        with tf.control_dependencies([tf.debugging.Assert(False, ["drawn"])]):
            return tf.zeros((16,)) + tf.cast(number, tf.float32), tf.zeros((), tf.int64)

    return tf.data.Dataset.range(count).map(fail)


def test_batches_of_known_size_need_nothing_else(tf, model):
    dataset = pairs(tf).batch(8, drop_remainder=True)
    said = snugly.predict(model, dataset, training=True)
    plain = snugly.predict(model, batch_size=8, training=True)
    assert said.requested == plain.requested
    # AND inference takes the inputs alone
    assert snugly.predict(model, dataset).requested == snugly.predict(model, batch_size=8).requested


def test_an_open_batch_is_asked_for_by_name(tf, model):
    dataset = pairs(tf).batch(8)
    with pytest.raises(InputError, match="leaves its batch size open") as caught:
        snugly.predict(model, dataset, training=True)
    assert caught.value.code == "SNG110"
    assert "batch_size=32" in caught.value.hint
    said = snugly.predict(model, dataset, batch_size=8, training=True)
    assert said.requested == snugly.predict(model, batch_size=8, training=True).requested


def test_a_dataset_is_divided_among_replicas(tf, model):
    dataset = pairs(tf).batch(8, drop_remainder=True)
    said = snugly.predict(model, dataset, training=True, strategy="mirrored:2")
    assert said.distribution.batch_size_per_replica == 4


@pytest.mark.parametrize(
    ("make", "batch_size", "message"),
    [
        (lambda tf: pairs(tf).batch(8, drop_remainder=True), 4, "has batches of 8"),
        (lambda tf: tf.data.Dataset.range(8), 4, "without a batch"),
        (
            lambda tf: tf.data.Dataset.zip(
                (
                    tf.data.Dataset.range(8).batch(2, drop_remainder=True),
                    tf.data.Dataset.range(8).batch(4, drop_remainder=True),
                )
            ),
            None,
            "batches of 2, 4",
        ),
        (
            lambda tf: tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [3]])).batch(
                2
            ),
            None,
            "not plain tensors",
        ),
    ],
)
def test_what_does_not_say_what_a_batch_is_gets_refused(tf, model, make, batch_size, message):
    with pytest.raises(InputError, match=message) as caught:
        snugly.predict(model, make(tf), batch_size=batch_size, training=True)
    assert caught.value.code == "SNG110"


def test_a_dataset_goes_alone(tf, model):
    with pytest.raises(InputError, match="goes alone"):
        snugly.predict(model, pairs(tf).batch(8), tf.TensorSpec((8,)), training=True)


def test_named_inputs_keep_their_names(tf):
    dataset = tf.data.Dataset.from_tensor_slices({"a": tf.zeros((8, 3)), "b": tf.zeros((8, 2))})
    (found,), size = example_from((dataset.batch(4, drop_remainder=True),), None)
    assert size == 4
    assert {name: tuple(spec.shape) for name, spec in found.items()} == {
        "a": (None, 3),
        "b": (None, 2),
    }


def test_other_examples_pass_through(tf):
    given = (tf.TensorSpec((None, 3)),)
    assert example_from(given, 5) == (given, 5)
