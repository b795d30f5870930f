"""Models that train in less: the same losses, inside the budget that was asked for."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import snugly
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.readers.dimensions import Dimensions
from snugly.training.batches import bytes_that_wait
from snugly.training.flattening import flat
from snugly.training.micro_batches import differences

pytestmark = pytest.mark.tensorflow

BATCH = 64


def wide(*extra, inputs=32):
    """A model whose activations are many times its weights."""
    keras.utils.set_random_seed(0)
    x = entry = keras.Input((128, inputs))
    for _ in range(6):
        x = layers.Dense(32, "tanh")(x)
        x = layers.LayerNormalization()(x)
        for layer in extra:
            x = layer()(x)
    x = layers.Dense(4)(layers.GlobalAveragePooling1D()(x))
    return compiled(keras.Model(entry, x))


def compiled(model):
    model.compile(keras.optimizers.SGD(0.05), "mse", jit_compile=False)
    return model


def losses(model, steps=12, batch=BATCH):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, 128, 32)).astype("float32")
    y = rng.normal(size=(batch, 4)).astype("float32")
    return [float(model.train_on_batch(x, y)) for _ in range(steps)]


def between(model, share, batch=BATCH):
    """A budget so far between what is resident and what the plain step takes in `fit`."""
    return budget_between(model, (), share, batch)


def budget_between(model, example, share, batch=BATCH):
    plain = snugly.predict(model, *example, batch_size=batch, training=True, jit_compile=False)
    waiting = bytes_that_wait(model, example, Dimensions(batch, {}))
    return int(plain.resident) + int(share * (int(plain.high) - int(plain.resident))) + waiting


def test_a_model_that_fits_is_left_alone():
    model = wide()
    small = snugly.shrink(model, memory="4GiB", batch_size=BATCH)
    assert small.model is model
    assert small.plan.changes == ()
    assert "fits as it is" in str(small.plan)


def test_recomputation_trains_to_the_same_losses_in_less_memory():
    # GIVEN a model with dropout, and less than it takes
    model = wide(lambda: layers.Dropout(0.2))
    budget = between(model, 0.7)
    # WHEN it is shrunk
    small = snugly.shrink(model, memory=budget, batch_size=BATCH)
    # THEN only what gives the same result was done, the prediction fits, and losses are the same
    assert [change.safety for change in small.plan.changes] == ["same-result"]
    assert small.prediction.verdict == "fits"
    found = losses(small.model)
    assert found == pytest.approx(losses(wide(lambda: layers.Dropout(0.2))), rel=1e-4)
    # AND it is not carried elsewhere as the model that it no longer is
    with pytest.raises(InputError, match="changed after it was made"):
        snugly.measure(small.model, batch_size=BATCH, training=True)


IN_ITS_OWN_PROCESS = """
import sys
import numpy as np, tensorflow as tf
import snugly
from tests.training.test_shrinking import BATCH, between, losses, wide

model = wide()
budget = between(model, 0.7)
small = snugly.shrink(model, memory=budget, batch_size=BATCH)
losses(small.model, 3)
print(int(budget), tf.config.experimental.get_memory_info("CPU:0")["peak"])
"""


def test_a_real_run_stays_inside_the_budget():
    environment = {**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "1"}
    run = subprocess.run(
        [sys.executable, "-c", IN_ITS_OWN_PROCESS],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    budget, peak = map(int, run.stdout.split())
    assert peak <= budget


def test_micro_batches_give_the_gradient_of_the_whole_batch():
    # GIVEN so little that recomputation alone does not do
    model = wide()
    small = snugly.shrink(model, memory=between(model, 0.12), batch_size=BATCH)
    assert any("micro-batches" in change.name for change in small.plan.changes)
    assert {change.safety for change in small.plan.changes} == {"same-result"}
    assert small.prediction.verdict == "fits"
    assert losses(small.model) == pytest.approx(losses(wide()), rel=1e-4)


def test_what_fit_holds_of_the_next_batches_is_part_of_the_budget():
    # GIVEN a model that takes more for its input than for anything else, and a budget for its step
    model = compiled(
        keras.Sequential(
            [keras.Input((256, 256, 3)), layers.GlobalAveragePooling2D(), layers.Dense(2)]
        )
    )
    step = snugly.predict(model, batch_size=BATCH, training=True, jit_compile=False)

    # WHEN it is to fit in that, THEN the batches that wait do not
    with pytest.raises(MemoryLimitExceeded) as refusal:
        snugly.shrink(model, memory=int(step.high), batch_size=BATCH)
    least = int(refusal.value.hint.split("memory=")[1].split()[0].rstrip(";"))
    assert least >= step.high + BATCH * 256 * 256 * 3 * 4
    assert "batches that wait (assumed)" in str(
        snugly.shrink(model, memory=least, batch_size=BATCH).prediction.budget.description
    )


def test_a_last_smaller_batch_is_weighed_as_keras_does():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 128, 32)).astype("f"), rng.normal(size=(50, 4)).astype("f")
    plain = wide().fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    pieces = snugly.training.accumulate(wide(), 4)
    found = pieces.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    assert found.history["loss"] == pytest.approx(plain.history["loss"], rel=1e-5)


def test_micro_batches_are_not_the_same_with_batch_statistics_or_dropout():
    assert "own mean" in differences(wide(layers.BatchNormalization))[0]
    assert "random" in differences(wide(lambda: layers.Dropout(0.2)))[0]
    assert differences(wide(lambda: layers.Dropout(0.0))) == []
    model = wide(layers.BatchNormalization)
    with pytest.raises(MemoryLimitExceeded) as refusal:
        snugly.shrink(model, memory=between(model, 0.1), batch_size=BATCH)
    assert "not the same result" in refusal.value.hint


def test_what_is_allowed_is_used_and_said():
    model = wide(layers.BatchNormalization)
    budget = between(model, 0.1)
    small = snugly.shrink(model, memory=budget, batch_size=BATCH, allow="changes-rounding")
    assert small.prediction.verdict == "fits"
    assert "changes-rounding" in {change.safety for change in small.plan.changes}
    assert all(np.isfinite(losses(small.model, 2)))


def test_a_smaller_batch_is_the_last_resort():
    class Own(keras.Model):
        def train_step(self, data):
            return super().train_step(data)

    base = wide(layers.BatchNormalization)
    model = compiled(Own(base.input, base.output))
    small = snugly.shrink(
        model, memory=between(model, 0.08), batch_size=BATCH, allow="changes-training"
    )
    assert small.batch_size < BATCH
    assert small.prediction.verdict == "fits"
    assert any("train_step" in reason for reason in small.plan.left_out)


def test_a_budget_below_the_weights_names_the_least_and_the_least_does():
    model = wide()
    with pytest.raises(MemoryLimitExceeded, match="weights and optimizer alone") as refusal:
        snugly.shrink(model, memory=1000, batch_size=BATCH)
    least = int(refusal.value.hint.split("memory=")[1].split()[0].rstrip(";"))
    assert snugly.shrink(model, memory=least, batch_size=BATCH).prediction.verdict == "fits"


@pytest.mark.parametrize("share", [0.6, 0.3, 0.02])
def test_what_a_refusal_calls_enough_is_enough(share):
    # GIVEN models with batch statistics, so that micro-batches are left out, of both kinds
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks = [
                keras.Sequential([layers.Dense(32, "tanh"), layers.BatchNormalization()])
                for _ in range(4)
            ]

        def call(self, x):
            for block in self.blocks:
                x = block(x)
            return tf.reduce_mean(x, 1)[:, :4]

    def own():
        keras.utils.set_random_seed(0)
        model = compiled(Net())
        model(np.zeros((1, 128, 32), "f"))
        return model

    example = (tf.TensorSpec((None, 128, 32)), tf.TensorSpec((None, 4)))
    for build in (own, lambda: wide(layers.BatchNormalization)):
        budget = budget_between(build(), example, share)
        try:
            snugly.shrink(build(), *example, memory=budget, batch_size=BATCH)
        except MemoryLimitExceeded as refusal:
            enough = int(refusal.hint.split("memory=")[1].split()[0].rstrip(";"))
            # WHEN a new one is shrunk to that, THEN it fits
            small = snugly.shrink(build(), *example, memory=enough, batch_size=BATCH)
            assert small.prediction.verdict == "fits"


def test_a_model_without_anything_to_recompute_says_so():
    model = compiled(keras.Sequential([keras.Input((2000,)), layers.Dense(1)]))
    with pytest.raises(MemoryLimitExceeded) as refusal:
        snugly.shrink(model, memory="5MiB", batch_size=256)
    assert "no part of it takes less" in refusal.value.hint


def test_models_inside_models_are_cut_as_one():
    keras.utils.set_random_seed(0)
    inner = keras.Sequential([layers.Input((128, 32)), layers.Dense(32, "tanh")])
    body = keras.Sequential(
        [layers.Input((128, 32)), inner, layers.Dropout(0.5), layers.Dense(32, "tanh")]
    )
    entry = keras.Input((128, 32))
    model = compiled(keras.Model(entry, body(entry)))
    one = flat(model)
    x = np.random.default_rng(0).normal(size=(2, 128, 32)).astype("f")
    assert {layer.name for layer in one.layers} >= {layer.name for layer in body.layers[1:]}
    assert inner not in one.layers
    np.testing.assert_array_equal(one(x, training=False), model(x, training=False))
    assert [w.path for w in one.weights] == [w.path for w in model.weights]
    plain = wide()
    assert flat(plain) is plain


def test_a_subclassed_model_is_recomputed_layer_by_layer():
    class Block(layers.Layer):
        def __init__(self):
            super().__init__()
            self.parts = [layers.Dense(32, "tanh") for _ in range(3)]

        def build(self, shape):
            for part in self.parts:
                part.build(shape)
            super().build(shape)

        def call(self, x):
            for part in self.parts:
                x = part(x)
            return x

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks = [Block() for _ in range(4)]
            self.head = layers.Dense(4)

        def call(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(tf.reduce_mean(x, 1))

    model = compiled(Net())
    model(np.zeros((1, 128, 32), "f"))
    example = (tf.TensorSpec((None, 128, 32)), tf.TensorSpec((None, 4)))
    budget = budget_between(model, example, 0.85)
    small = snugly.shrink(model, *example, memory=budget, batch_size=BATCH)
    assert small.model is model
    assert small.prediction.verdict == "fits"
    assert snugly.training.is_checkpointed(model.blocks[0])


def test_bad_requests_are_said_before_anything_runs():
    model = wide()
    with pytest.raises(InputError, match="no budget"):
        snugly.shrink(model, batch_size=4)
    with pytest.raises(InputError, match="allow cannot be"):
        snugly.shrink(model, memory="1GiB", batch_size=4, allow="same-results")
    with pytest.raises(InputError, match="at least 1"):
        snugly.shrink(model, memory="1GiB", batch_size=0)
    with pytest.raises(InputError, match="no optimizer and loss"):
        snugly.shrink(keras.Model(model.input, model.output), memory="1GiB", batch_size=4)
    model.loss = keras.losses.MeanSquaredError(reduction="sum")
    with pytest.raises(InputError, match="reduced by 'sum'"):
        snugly.training.accumulate(model, 2)


def test_datasets_must_be_batched_and_have_their_own_batch_size():
    model = wide()
    x, y = np.zeros((8, 128, 32), "f"), np.zeros((8, 4), "f")
    examples = tf.data.Dataset.from_tensor_slices((x, y))
    alike = tf.data.Dataset.from_tensor_slices((x, np.zeros((8, 128), "f")))
    for unbatched in (examples, alike):
        with pytest.raises(InputError, match="single examples"):
            snugly.shrink(model, unbatched, memory="1GiB")
    with pytest.raises(InputError, match="not OwnedIterator"):
        snugly.shrink(model, iter(examples.batch(4)), memory="1GiB")
    with pytest.raises(InputError, match="Keras 3 ignores"):
        snugly.shrink(model, examples.batch(4), memory="1GiB", batch_size=2)
    with pytest.raises(InputError, match="last batch"):
        snugly.shrink(model, examples.batch(4), memory="1GiB")
    batched = examples.batch(4, drop_remainder=True)
    assert snugly.shrink(model, batched, memory="1GiB").batch_size == 4


def test_the_largest_batch_is_one_that_runs_and_hardly_more_would():
    # GIVEN a chain of dense layers, whose peak hardly depends on how its threads are scheduled
    x = entry = keras.Input((128, 32))
    for _ in range(6):
        x = layers.Dense(32, "tanh")(x)
    model = compiled(keras.Model(entry, layers.Dense(4)(layers.GlobalAveragePooling1D()(x))))
    # WHEN the largest batch is looked for
    found = snugly.largest_batch_size(model, memory="48MiB")
    # THEN it runs in 48 MiB, and one a quarter larger does not
    options = {"training": True, "steps": 2, "memory": "48MiB"}
    assert snugly.measure(model, batch_size=found, **options).peak <= 48 << 20
    with pytest.raises(MemoryLimitExceeded):
        snugly.measure(model, batch_size=found + found // 4, **options)


def test_by_prediction_alone_the_largest_batch_surely_fits():
    model = wide()
    found = snugly.largest_batch_size(model, memory="64MiB", probes=0)
    options = {"training": True, "memory": "64MiB", "jit_compile": False}
    assert snugly.predict(model, batch_size=found, **options).verdict == "fits"
    assert snugly.predict(model, batch_size=found + 1 + found // 10, **options).verdict != "fits"
    with pytest.raises(MemoryLimitExceeded, match="not even one"):
        snugly.largest_batch_size(model, memory=1000, probes=0)
    with pytest.raises(InputError, match="no budget"):
        snugly.largest_batch_size(model)
