"""MemoryMonitor in a real training: its keys arrive everywhere that Keras takes logs to."""

import csv
import pickle
import subprocess
import sys
import threading

import numpy
import pytest

import snugly
from snugly.errors import InputError, MissingDependencyError
from snugly.integrations.monitor import Monitoring, draw_epochs, move_to_front
from snugly.integrations.reading import Reading, card_of, read
from snugly.recording.allocator import Peak, memory_info, reset_peak
from snugly.units import Size

KEYS = {"memory_peak", "memory_in_use", "memory_process"}  # and memory_card, on a GPU
MIB = 1024**2

keras_and_numpy = pytest.mark.filterwarnings(
    # Keras 3.15's TensorBoard callback reads the learning rate in a way that NumPy 2 deprecates.
    "ignore:__array__ implementation doesn't accept:DeprecationWarning"
)


@pytest.fixture(scope="module")
def model():
    import keras

    model = keras.Sequential(
        [keras.layers.Input((8,)), keras.layers.Dense(2048), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    return model


def fit(model, *callbacks, epochs=2, **settings):
    x, y = numpy.zeros((1024, 8), "f"), numpy.zeros((1024, 1), "f")
    settings = {"verbose": 0, "batch_size": 512} | settings
    return model.fit(x, y, epochs=epochs, callbacks=list(callbacks), **settings)


@pytest.mark.tensorflow
def test_the_history_has_bytes_of_every_epoch(model):
    history = fit(model, snugly.MemoryMonitor()).history
    assert history.keys() >= KEYS
    assert all(len(history[key]) == 2 for key in KEYS)
    assert all(isinstance(size, int) for key in KEYS for size in history[key])
    # 512 rows of 2,048 floats are 4 MiB, and they are not the half of it
    assert 4 * MIB <= history["memory_peak"][1] < 64 * MIB
    assert history["memory_process"][1] > 64 * MIB


@pytest.mark.tensorflow
def test_callbacks_that_stand_before_it_see_its_keys(model, tmp_path):
    import keras

    seen = []
    batch_seen = []
    before = [
        keras.callbacks.CSVLogger(tmp_path / "log.csv"),
        keras.callbacks.LambdaCallback(
            on_epoch_end=lambda _, logs: seen.append(set(logs)),
            on_train_batch_end=lambda *_, logs: batch_seen.append(set(logs)),
        ),
    ]
    fit(model, *before, snugly.MemoryMonitor(), validation_split=0.5)
    with (tmp_path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    assert all(int(row["memory_peak"]) >= 2 * MIB for row in rows)
    assert all(keys >= KEYS | {"val_loss"} for keys in seen)
    assert batch_seen
    assert all(keys >= KEYS for keys in batch_seen)


@pytest.mark.tensorflow
def test_the_progress_bar_shows_it(model, capsys):
    fit(model, snugly.MemoryMonitor(unit="MiB"), verbose=2)
    assert "memory_peak: " in capsys.readouterr().out


@pytest.mark.tensorflow
def test_batches_can_be_left_alone_and_units_chosen(model):
    import keras

    seen = []
    watch = keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_, logs: seen.append(logs))
    monitor = snugly.MemoryMonitor(batches=False, unit="MiB")
    history = fit(model, monitor, watch).history
    assert not any(key.startswith("memory_") for logs in seen for key in logs)
    assert history["memory_peak"][0] * MIB == monitor.epochs[0].peak


@pytest.mark.tensorflow
@pytest.mark.parametrize("per_epoch", [True, False])
def test_each_epoch_has_a_peak_of_its_own_unless_told_otherwise(model, per_epoch):
    # GIVEN a first epoch in which 64 MiB more are held for a moment
    import keras
    import tensorflow as tf

    def hold(epoch, _):
        if epoch == 0:
            tf.ones((64, 512, 512))

    monitor = snugly.MemoryMonitor(per_epoch=per_epoch)
    peaks = fit(model, monitor, keras.callbacks.LambdaCallback(on_epoch_begin=hold), epochs=3)
    first, _, third = peaks.history["memory_peak"]
    assert first >= 64 * MIB
    assert (third < 64 * MIB) is per_epoch
    assert monitor.peak == Size(first)


@pytest.mark.tensorflow
def test_a_surrounding_peak_is_not_lost_to_the_epochs(model):
    import tensorflow as tf

    surrounding = Peak("CPU:0")
    reset_peak("CPU:0")
    tf.ones((96, 512, 512))
    fit(model, snugly.MemoryMonitor("CPU:0"))
    assert surrounding.read() >= 96 * MIB
    assert memory_info("CPU:0").peak >= 96 * MIB


@pytest.mark.tensorflow
def test_a_recording_around_the_training_keeps_its_peak(model):
    import tensorflow as tf

    with snugly.record() as record:
        tf.ones((96, 512, 512))
        fit(model, snugly.MemoryMonitor("CPU:0"))
    assert record.peak >= 96 * MIB


@pytest.mark.tensorflow
def test_it_can_be_subclassed_pickled_and_told_from_others(model):
    import keras

    class Mine(snugly.MemoryMonitor):
        def on_epoch_end(self, epoch, logs=None):
            super().on_epoch_end(epoch, logs)
            logs["mine"] = len(self.epochs)

    mine = Mine()
    seen = []
    first = keras.callbacks.LambdaCallback(on_epoch_end=lambda _, logs: seen.append(logs["mine"]))
    fit(model, first, mine)
    assert seen == [1, 2]
    monitor = snugly.MemoryMonitor(unit="GiB")
    fit(model, monitor)
    again = pickle.loads(pickle.dumps(monitor))  # noqa: S301 - our own bytes
    assert isinstance(again, keras.callbacks.Callback)
    assert isinstance(again, snugly.MemoryMonitor)
    assert (again.unit, again.epochs) == ("GiB", monitor.epochs)
    assert not isinstance(snugly.StopOnMemoryLimit(1), snugly.MemoryMonitor)
    fit(model, again)  # and it goes on working


@pytest.mark.tensorflow
def test_two_threads_get_the_same_class(monkeypatch):
    from snugly.integrations import keras_callbacks

    monkeypatch.delitem(vars(keras_callbacks), "MemoryMonitor", raising=False)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(keras_callbacks.MemoryMonitor))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    # Other tests made theirs from the class that was there before.
    monkeypatch.setattr(keras_callbacks, "MemoryMonitor", snugly.MemoryMonitor)


@keras_and_numpy
@pytest.mark.tensorflow
def test_scalars_go_beside_what_keras_writes_for_tensorboard(model, tmp_path):
    import keras

    fit(model, keras.callbacks.TensorBoard(tmp_path), snugly.MemoryMonitor())
    assert {"memory/peak", "memory/in_use", "memory/process"} <= scalars(tmp_path / "memory").keys()
    assert "epoch_memory_peak" in scalars(tmp_path / "train")


@pytest.mark.tensorflow
@pytest.mark.parametrize(("update_freq", "points"), [("epoch", 2), ("batch", 4)])
def test_scalars_go_where_they_are_asked_for(model, tmp_path, update_freq, points):
    monitor = snugly.MemoryMonitor(log_dir=tmp_path, batches=False, update_freq=update_freq)
    fit(model, monitor)
    written = scalars(tmp_path)["memory/process"]
    assert sorted(written) == list(range(points))
    # float32 is right to 7 digits
    assert written[points - 1] == pytest.approx(monitor.epochs[-1].process, rel=0.02)


@keras_and_numpy
@pytest.mark.tensorflow
def test_without_tensorboard_nothing_is_written(model, tmp_path, monkeypatch):
    import keras

    from snugly.integrations import tensorboard

    monkeypatch.setattr(tensorboard, "is_installed", lambda: False)
    with pytest.raises(MissingDependencyError) as caught:
        fit(model, snugly.MemoryMonitor(log_dir=tmp_path))
    assert caught.value.hint == "pip install tensorboard"
    fit(model, keras.callbacks.TensorBoard(tmp_path), snugly.MemoryMonitor())
    assert not (tmp_path / "memory").exists()
    fit(model, snugly.MemoryMonitor())  # nobody asked


def scalars(folder):
    """Every scalar in a folder of TensorBoard's, by tag and step."""
    import tensorflow as tf
    from tensorflow.core.util import event_pb2

    found: dict[str, dict[int, float]] = {}
    for path in folder.glob("events.out.*"):
        for entry in tf.data.TFRecordDataset(str(path)):
            event = event_pb2.Event.FromString(entry.numpy())
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name in {"scalars", ""}:
                    number = float(tf.make_ndarray(value.tensor))
                    found.setdefault(value.tag, {})[event.step] = number
    return found


@pytest.mark.tensorflow
def test_the_summary_has_a_row_for_each_epoch(model, capsys):
    monitor = snugly.MemoryMonitor()
    fit(model, monitor)
    capsys.readouterr()
    monitor.summary()
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["measured", "in", "epoch", "peak", "in", "use", "process", "card"]
    assert [row.split()[0] for row in rows] == ["1", "2"]


def test_figures_that_nobody_keeps_are_left_out():
    reading = Reading(peak=None, in_use=None, process=5 * MIB)
    assert reading.known() == {"process": 5 * MIB}
    assert draw_epochs([reading]).row_count == 1
    assert Monitoring()._entries(reading) == {"memory_process": 5 * MIB}
    assert Monitoring().peak is None
    assert read("GPU:7").known().keys() == {"process"}


def test_the_card_has_the_number_of_the_device():
    assert [card_of("GPU:0"), card_of("GPU:3"), card_of("CPU")] == [0, 3, 0]


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"unit": "MB"}, "give one of B, KiB, MiB"),
        ({"update_freq": 7}, 'give "epoch" or "batch"'),
    ],
)
def test_settings_that_are_not_known_are_refused(settings, hint):
    with pytest.raises(InputError) as caught:
        Monitoring(**settings)
    assert hint in caught.value.hint


def test_outside_of_a_list_there_is_no_front():
    assert move_to_front(object()) == []
    monitor = Monitoring()
    logs = {}
    monitor.on_epoch_begin(0)
    monitor.on_train_batch_end(0, logs)
    monitor.on_train_batch_end(0, None)
    monitor.on_epoch_end(0, None)
    monitor.on_train_end()
    assert "memory_process" in logs
    assert len(monitor.epochs) == 1


def run_fresh(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_keras_is_loaded_only_when_a_callback_is_asked_for():
    code = "import sys; import snugly.integrations.keras_callbacks as c; import snugly"
    assert run_fresh(f"{code}; print('keras' in sys.modules)") == "False"


def test_without_keras_the_message_says_what_to_install():
    code = """
import sys
sys.modules["keras"] = None  # as if it were not installed
import snugly
try:
    snugly.MemoryMonitor
except snugly.MissingDependencyError as problem:
    print(problem.message, "|", problem.hint)
try:
    snugly.integrations.keras_callbacks.Nothing
except AttributeError as problem:
    print(problem)
"""
    told = run_fresh(code)
    assert "snugly.MemoryMonitor is a callback of Keras" in told
    assert "pip install 'snugly[tensorflow]'" in told
    assert "no attribute 'Nothing'" in told
