"""A training that was stopped goes on as if it had not been."""

import time
import warnings

import numpy
import pytest

import snugly
from snugly.errors import InputError
from snugly.integrations.training_state import restore_state, save_state

pytestmark = pytest.mark.tensorflow
EPOCHS, BATCHES, SIZE = 3, 6, 8


def build():
    import keras

    keras.utils.set_random_seed(5)
    layers = keras.layers
    model = keras.Sequential(
        [layers.Input((4,)), layers.Dense(16, "tanh"), layers.Dropout(0.3), layers.Dense(1)]
    )
    model.compile("adam", "mse")
    return model


def batches():
    import tensorflow as tf

    chance = numpy.random.default_rng(1)
    x = chance.standard_normal((BATCHES * SIZE, 4)).astype("f")
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(SIZE)


def losses_of(model, data, *callbacks, **settings):
    import keras

    class Each(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.losses, self._before = [], (0.0, 0)

        def on_epoch_begin(self, *_, **__):
            self._before = (0.0, 0)

        def on_train_batch_end(self, batch, logs=None):
            # Keras reports the mean since the epoch began; the sum's growth is this batch's loss.
            total = logs["loss"] * (batch + 1)
            self.losses.append(total - self._before[0])
            self._before = (total, batch + 1)

    each = Each()
    model.fit(data, verbose=0, shuffle=False, callbacks=[each, *callbacks], **settings)
    return each.losses


def test_a_stopped_training_goes_on_with_the_same_losses(tmp_path):
    import keras

    whole = losses_of(build(), batches(), epochs=EPOCHS)
    # GIVEN a training that is stopped after the third batch of its second epoch
    limit = snugly.StopOnMemoryLimit("8 TiB", save_to=tmp_path / "training.npz")

    class Squeeze(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, **_):
            if limit._epoch == 1 and batch == 2:
                limit._bound = snugly.Size(1)

    with pytest.warns(UserWarning, match="batch 3 of epoch 2"):
        first = losses_of(build(), batches(), Squeeze(), limit, epochs=EPOCHS)
    assert len(first) == BATCHES + 3
    # WHEN another model of the same shape takes it up
    model = build()
    at = snugly.StopOnMemoryLimit.resume(model, tmp_path / "training.npz")
    assert (at.epoch, at.batch) == (1, 3)
    rest = losses_of(model, batches().skip(3), initial_epoch=1, epochs=2)
    rest += losses_of(model, batches(), initial_epoch=2, epochs=EPOCHS)
    # THEN every loss is that of the training that nobody stopped
    numpy.testing.assert_allclose(first + rest, whole, rtol=1e-4)


def test_without_a_limit_the_guard_around_it_counts(tmp_path):
    import keras

    kept = []

    def grow(*_, **__):
        kept.append(bytearray(b"1") * (48 << 20))
        # Stacks of threads that have just begun count until the watcher has seen them untouched.
        time.sleep(0.2)

    leak = keras.callbacks.LambdaCallback(on_train_batch_end=grow)
    model = build()
    losses_of(model, batches(), epochs=1)
    stop = snugly.StopOnMemoryLimit(save_to=tmp_path / "training")
    from snugly.guarding.enclosure import ENCLOSURE

    room = ENCLOSURE.look().held + (400 << 20)
    with warnings.catch_warnings(), snugly.guard(room):
        warnings.simplefilter("ignore")  # the guard's and the callback's
        losses_of(model, batches(), leak, stop, epochs=EPOCHS)
    assert stop.stopped_by is not None
    at = restore_state(build(), tmp_path / "training.npz")
    assert (at.epoch, at.batch) == (stop.stopped_by.epoch, stop.stopped_by.batch + 1)


def test_without_limit_and_guard_it_says_so():
    with pytest.raises(InputError, match="no guard around"):
        losses_of(build(), batches(), snugly.StopOnMemoryLimit(), epochs=1)


def test_what_is_not_a_training_of_this_model_is_refused(tmp_path):
    import keras

    model = build()
    save_state(model, tmp_path / "a", 0, 0)
    other = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    other.compile("adam", "mse")
    with pytest.raises(InputError, match="another model"):
        restore_state(other, tmp_path / "a")
    (tmp_path / "b.npz").write_bytes(b"noise")
    with pytest.raises(InputError, match="cannot read"):
        restore_state(model, tmp_path / "b")
    with pytest.raises(InputError, match="cannot save"):
        save_state(model, "/proc/nowhere/a", 0, 0)
    other = keras.Sequential([keras.layers.Dense(2)])
    with pytest.raises(InputError, match="built and compiled"):
        save_state(other, tmp_path / "c", 0, 0)


def test_a_training_that_the_guard_ends_goes_on_from_its_last_finished_step(tmp_path):
    import keras

    whole = losses_of(build(), batches(), epochs=EPOCHS)

    # GIVEN a training that asks for far too much before the fourth batch of its second epoch
    class Greedy(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            del logs
            self.epoch = epoch

        def on_train_batch_begin(self, batch, logs=None):
            del logs
            if (self.epoch, batch) == (1, 3):
                numpy.ones(1 << 38)

    stop = snugly.StopOnMemoryLimit("8 TiB", save_to=tmp_path / "training.npz")
    with pytest.raises(snugly.MemoryLimitExceeded), snugly.guard("3GiB"):
        losses_of(build(), batches(), Greedy(), stop, epochs=EPOCHS)

    # WHEN another model takes it up
    model = build()
    at = snugly.StopOnMemoryLimit.resume(model, tmp_path / "training.npz")
    assert (at.epoch, at.batch) == (1, 3)
    rest = losses_of(model, batches().skip(3), initial_epoch=1, epochs=2)
    rest += losses_of(model, batches(), initial_epoch=2, epochs=EPOCHS)

    # THEN every loss is that of the training that nobody stopped
    numpy.testing.assert_allclose(rest, whole[BATCHES + 3 :], rtol=1e-4)


def test_a_step_that_is_refused_in_its_middle_leaves_the_one_before_it(tmp_path):
    import keras

    from snugly.guarding.own_memory import OwnMemory

    x = numpy.concatenate([one.numpy() for one, _ in batches()])

    class Uneven(keras.utils.PyDataset):
        """The same batches; one of the second epoch has a million times as many rows."""

        epoch = 0

        def __len__(self):
            return BATCHES

        def begin(self, epoch, _logs):
            self.epoch = epoch

        def __getitem__(self, index):
            part = x[index * SIZE : (index + 1) * SIZE]
            if (self.epoch, index) == (1, 2):
                part = numpy.tile(part, (1_000_000, 1))
            return part, part[:, :1]

    whole = losses_of(build(), batches(), epochs=EPOCHS)

    # GIVEN a training whose step wants more than the guard allows
    model, saved = build(), tmp_path / "training.npz"
    stop = snugly.StopOnMemoryLimit("8 TiB", save_to=saved)
    limit = OwnMemory().look().held + (600 << 20)
    data = Uneven()
    count = keras.callbacks.LambdaCallback(on_epoch_begin=data.begin)
    with pytest.raises(snugly.MemoryLimitExceeded), snugly.guard(limit):
        losses_of(model, data, stop, count, epochs=EPOCHS)

    # WHEN it goes on with batches that fit
    model = build()
    at = snugly.StopOnMemoryLimit.resume(model, saved)
    assert (at.epoch, at.batch) == (1, 2)
    rest = losses_of(model, batches().skip(2), initial_epoch=1, epochs=2)

    # THEN the losses are those of a training without that batch
    numpy.testing.assert_allclose(rest, whole[BATCHES + 2 : 2 * BATCHES], rtol=1e-4)


def test_a_guard_that_strikes_between_two_copies_leaves_no_mixture(tmp_path):
    from snugly.integrations.last_step import LastStep
    from snugly.integrations.training_state import trained_variables

    # GIVEN a copy of one step, and a guard that strikes while the next one is copied
    model, saved = build(), tmp_path / "training.npz"
    last = LastStep(model, saved, limit=1 << 30)
    last.note(0, 1)
    for _, variable in trained_variables(model):
        variable.assign(numpy.asarray(variable) + numpy.ones((), variable.dtype))
    now = [numpy.asarray(variable).copy() for _, variable in trained_variables(model)]

    class Strikes:
        def __array__(self, *_, **__):
            last._variables.pop(1)
            raise snugly.MemoryLimitExceeded("struck")

    last._variables.insert(1, ("struck", Strikes()))
    with pytest.raises(snugly.MemoryLimitExceeded):
        last.note(0, 2)

    # WHEN it is written
    last.write()

    # THEN all of the file is of the second step
    other = build()
    at = restore_state(other, saved)
    assert (at.epoch, at.batch) == (0, 2)
    for (_, variable), value in zip(trained_variables(other), now, strict=True):
        numpy.testing.assert_array_equal(numpy.asarray(variable), value)


def test_what_something_else_ended_is_not_saved_by_a_later_guard(tmp_path):
    import keras

    from snugly.guarding.enclosure import ENCLOSURE

    class Fails(keras.callbacks.Callback):
        def on_epoch_begin(self, *_, **__):
            assert ENCLOSURE.savers
            raise ZeroDivisionError

    stop = snugly.StopOnMemoryLimit("8 TiB", save_to=tmp_path / "training.npz")
    with pytest.raises(ZeroDivisionError), snugly.guard("64GiB"):
        losses_of(build(), batches(), stop, Fails(), epochs=1)
    assert not ENCLOSURE.savers


def test_a_model_that_is_large_beside_the_limit_is_not_copied_with_every_step(tmp_path):
    from snugly.integrations.last_step import LastStep

    last = LastStep(build(), tmp_path / "training.npz", limit=8)
    last.note(0, 1)
    last.write()

    assert not (tmp_path / "training.npz").exists()
