"""StopOnMemoryLimit in a real training that holds more with every batch."""

import pickle

import numpy
import pytest

import snugly
from snugly.devices.process import resident_bytes
from snugly.errors import InputError, InvalidSizeError
from snugly.integrations.memory_limit import Limiting, measure_of

MIB = 1024**2
pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def model():
    import keras

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    fit(model, batches=2)  # what TensorFlow takes once is there before anything is measured
    return model


def fit(model, *callbacks, batches=16, **settings):
    x, y = numpy.zeros((8 * batches, 4), "f"), numpy.zeros((8 * batches, 1), "f")
    settings = {"verbose": 0, "batch_size": 8, "epochs": 2, "shuffle": False} | settings
    return model.fit(x, y, callbacks=list(callbacks), **settings)


@pytest.fixture
def hoarder():
    """A callback that keeps 32 MiB more after every batch."""
    import keras

    kept = []
    return keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda *_, **__: kept.append(bytearray(32 * MIB))
    )


def test_training_stops_at_the_batch_after_which_the_limit_is_exceeded(model, hoarder):
    # GIVEN 100 MiB of room, and 32 MiB kept after every batch
    limit = snugly.StopOnMemoryLimit(resident_bytes() + 100 * MIB)
    # WHEN trained THEN the fourth batch is the last, and fit returns as usual
    with pytest.warns(UserWarning, match="training stopped after batch") as warned:
        history = fit(model, hoarder, limit)
    assert len(history.epoch) == 1
    why = limit.stopped_by
    assert (why.watch, why.epoch, why.limit) == ("process", 0, limit.limit)
    assert why.batch in {2, 3, 4}  # TensorFlow itself takes or returns some MiB meanwhile
    assert why.measured > why.limit
    assert str(warned[0].message) == str(why)
    assert f"batch {why.batch + 1} of epoch 1: the process occupied {why.measured}" in str(why)


def test_a_limit_that_is_not_reached_does_nothing(model):
    limit = snugly.StopOnMemoryLimit("8 TiB")
    assert len(fit(model, limit).epoch) == 2
    assert limit.stopped_by is None


def test_it_can_raise_where_the_user_trains(model):
    limit = snugly.StopOnMemoryLimit("1MiB", action="raise")
    with pytest.raises(snugly.MemoryLimitExceeded, match="over the limit of 1 MiB") as caught:
        fit(model, limit)
    assert isinstance(caught.value, MemoryError)
    assert limit.stopped_by.batch == 0


def handed_out_and(more):
    """A limit for CPU:0's allocator, which may hold what other tests left."""
    import tensorflow as tf

    return tf.config.experimental.get_memory_info("CPU:0")["current"] + more


def test_a_peak_within_a_batch_counts_though_it_is_free_again(model):
    import keras
    import tensorflow as tf

    def spike(batch, **_):
        if batch == 5:
            tf.ones((64, 512, 512))

    limit = snugly.StopOnMemoryLimit(handed_out_and(48 * MIB), watch="device", device="CPU:0")
    with pytest.warns(UserWarning, match="CPU:0's allocator had handed out"):
        fit(model, keras.callbacks.LambdaCallback(on_train_batch_begin=spike), limit)
    assert limit.stopped_by.batch == 5


def test_what_validation_takes_is_seen_at_the_end_of_the_epoch(model):
    import keras
    import tensorflow as tf

    spike = keras.callbacks.LambdaCallback(on_test_begin=lambda _: tf.ones((64, 512, 512)))
    limit = snugly.StopOnMemoryLimit(handed_out_and(48 * MIB), watch="device", device="CPU:0")
    with pytest.warns(UserWarning, match="stopped after epoch 1:"):
        history = fit(model, spike, limit, validation_split=0.5)
    assert (len(history.epoch), limit.stopped_by.batch) == (1, None)


def test_it_can_be_used_again_and_pickled(model):
    limit = snugly.StopOnMemoryLimit("1MiB")
    for _ in range(2):
        with pytest.warns(UserWarning, match="batch 1 of epoch 1"):
            fit(model, limit)
    again = pickle.loads(pickle.dumps(limit))  # noqa: S301 - our own bytes
    assert again.stopped_by == limit.stopped_by


@pytest.mark.parametrize(
    ("watch", "device", "hint"),
    [
        ("device", "GPU:7", 'watch="process"'),
        ("card", "CPU:0", 'watch="device"'),
        ("card", "GPU:7", 'watch="device"'),
    ],
)
def test_a_figure_that_nobody_keeps_is_refused_when_training_begins(model, watch, device, hint):
    with pytest.raises(InputError) as caught:
        fit(model, snugly.StopOnMemoryLimit("1GiB", watch=watch, device=device))
    assert hint in caught.value.hint


def test_the_card_is_asked_for_this_process(monkeypatch):
    from snugly.integrations import memory_limit

    monkeypatch.setattr(memory_limit, "card_bytes", lambda index: 700 * MIB + index)
    assert measure_of("card", "GPU:1")() == 700 * MIB + 1


@pytest.mark.parametrize(
    "settings",
    [{"limit": "4 bananas"}, {"limit": 1, "watch": "cpu"}, {"limit": 1, "action": "panic"}],
)
def test_settings_that_are_not_known_are_refused(settings):
    with pytest.raises(InputError) as caught:
        Limiting(**settings)
    assert caught.value.hint
    assert isinstance(caught.value, InvalidSizeError) is ("bananas" in str(settings))
