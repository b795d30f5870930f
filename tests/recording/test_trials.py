"""Batches tried in processes of their own: what they held, that they did not run, what is left."""

import os

import keras
import psutil
import pytest

from snugly.errors import InputError, MemoryLimitExceeded
from snugly.recording import measuring
from snugly.recording.carrying import Task
from snugly.recording.trials import Trials
from snugly.units import Size

pytestmark = pytest.mark.tensorflow

LIMIT = Size("128MiB")


def task():
    layers = keras.layers
    convolutions = [layers.Conv2D(32, 3, padding="same", activation="relu") for _ in range(3)]
    model = keras.Sequential([keras.Input((32, 32, 3)), *convolutions, layers.GlobalMaxPooling2D()])
    model.compile("sgd", "mse")
    return Task(model, training=True, steps=2)


def test_a_try_says_what_measuring_says_and_the_next_one_whether_it_runs(monkeypatch):
    # GIVEN a model of which ten examples fit and a thousand do not, and operations in one order
    for name in ("TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"):
        monkeypatch.setenv(name, "1")
    wanted = task()
    with Trials(wanted, LIMIT, most=3) as trials:
        # WHEN they are tried
        held = trials.peak(10)
        with pytest.raises(MemoryLimitExceeded):
            trials.peak(1000)
        again = trials.peak(10)

    # THEN the peak is that of a recorded run, but for what one refused left in the allocator
    record = measuring.measure(wanted.program, batch_size=10, training=True, steps=2, memory=LIMIT)
    assert held is not None
    assert again is not None
    assert held == pytest.approx(int(record.peak), rel=0.25)
    assert again == pytest.approx(held, rel=0.25)


def test_processes_that_nobody_asked_are_gone_afterwards():
    with Trials(task(), LIMIT, most=1):
        (waiting,) = [
            child
            for child in psutil.Process(os.getpid()).children()
            # Other tests may have left one that ended, of which only its status can be asked.
            if child.status() != psutil.STATUS_ZOMBIE
            and "snugly.recording.trial" in child.cmdline()
        ]
    assert not waiting.is_running() or waiting.status() == psutil.STATUS_ZOMBIE


def test_a_program_that_fails_says_why():
    broken = Task(lambda x: x + "text", (keras.Input((2,)).shape,), steps=1)
    with Trials(broken, LIMIT, most=1) as trials, pytest.raises(InputError):
        trials.peak(1)
