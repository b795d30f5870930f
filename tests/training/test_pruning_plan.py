"""What pruning saves: said before it is done, and true when it was."""

import keras
import numpy as np
import pytest
from keras import layers
from tests.training.pruned_models import dense_block, small_convolutions

import snugly
from snugly.errors import MemoryLimitExceeded

pytestmark = pytest.mark.tensorflow


def test_the_plan_says_what_is_saved_before_anything_runs():
    model = dense_block(*small_convolutions())
    model.compile("adam", "mse")
    plan = snugly.training.pruning_plan(model, 0.5, batch_size=16)
    small = plan.apply()
    assert plan.safety == "changes-training"
    assert plan.before.weights == 4 * model.count_params()
    assert plan.after.weights == 4 * small.count_params()
    assert plan.saved == plan.before.weights - plan.after.weights
    predicted = snugly.predict(small, batch_size=16, training=True)
    assert plan.after.peak == predicted.peak
    # Adam has two slots for each trainable weight.
    trainable = sum(int(np.prod(weight.shape)) for weight in small.trainable_weights)
    assert plan.after.optimizer == pytest.approx(8 * trainable, abs=64)
    text = str(plan)
    assert "counted" in text
    assert "in a training step (predicted, at most" in text


def test_without_a_batch_size_the_peak_is_not_guessed():
    plan = snugly.training.pruning_plan(dense_block(*small_convolutions()), 0.5)
    assert plan.after.peak is None
    assert "not predicted: give batch_size=" in str(plan)


def test_a_budget_is_met_with_as_much_as_fits():
    model = dense_block(*small_convolutions())
    model.compile("adam", "mse")
    whole = snugly.predict(model, batch_size=32, training=True)
    least = snugly.training.pruning_plan(model, 1e-9, batch_size=32).after.prediction
    budget = (int(whole.high) + int(least.high)) // 2
    plan = snugly.training.pruning_plan(model, memory=budget, batch_size=32)
    assert plan.after.prediction.verdict == "fits"
    assert 0 < plan.keep < 1
    # AND more would not fit
    more = snugly.training.pruning_plan(model, min(1, plan.keep + 0.15), batch_size=32)
    assert int(more.after.prediction.high) > budget
    assert snugly.training.pruning_plan(model, memory="4GiB", batch_size=32).keep == 1
    with pytest.raises(MemoryLimitExceeded, match="one channel of every group it needs") as problem:
        snugly.training.prune(model, memory="4KiB", batch_size=32)
    assert problem.value.code == "SNG533"


def test_bytes_said_before_are_those_measured_after():
    # GIVEN a model whose weights are of several types
    entry, x = small_convolutions()
    x = layers.Dense(16, dtype="float16")(x)
    model = keras.Model(entry, layers.Dense(3)(layers.Flatten()(x)))
    model.compile("adam", "mse", jit_compile=False)
    before = held(model)
    # WHEN a plan says what is saved, and is then carried out
    plan = snugly.training.pruning_plan(model, 0.5, batch_size=64)
    small = plan.apply()
    # THEN the buffers of the weights are smaller by as much, to the byte
    assert plan.before.weights == before
    assert plan.after.weights == held(small)
    assert plan.saved == before - held(small) > 0
    # AND the optimizer, once it is built, takes what was predicted but for its counter of steps
    small.optimizer.build(small.trainable_variables)
    counter, *rest = small.optimizer.variables
    assert counter is small.optimizer.iterations
    assert plan.after.optimizer == sum(variable.value.numpy().nbytes for variable in rest)
    # AND the peak of a step, run in a process of its own, is not above what was predicted, and not
    # far below: on a busy machine fewer operations run side by side
    measured = snugly.measure(small, batch_size=64, training=True)
    assert 0.9 * plan.after.prediction.low <= measured.peak <= plan.after.prediction.high


def held(model):
    return sum(variable.value.numpy().nbytes for variable in model.weights)
