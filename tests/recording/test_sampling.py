"""Samples: taken from the first moment to the last, in a thread that ends, ever more seldom."""

import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

from snugly.recording import sampling
from snugly.recording.sampling import COLUMNS, Sampler

PATIENCE = 60.0  # seconds that a test waits for a thread before it fails


class Collected:
    """What a sampler hands on, and how often it was called back."""

    def __init__(self):
        self.batches: list[dict] = []
        self.peaks: list[int] = []
        self.changed = threading.Condition()

    def take(self, batch):
        with self.changed:
            self.batches.append(batch)
            self.changed.notify_all()

    def after_each(self, peak):
        with self.changed:
            self.peaks.append(peak)
            self.changed.notify_all()

    def wait_for(self, count):
        """Wait until so many samples were taken in the background."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.peaks) >= count, PATIENCE)

    def column(self, name):
        return np.concatenate([batch[name] for batch in self.batches]).tolist()


@pytest.fixture
def collected():
    return Collected()


@pytest.fixture
def sampler(collected, monkeypatch):
    """A sampler that is in a hurry."""
    monkeypatch.setattr(sampling, "INTERVAL", 0.001)
    return Sampler(collected.take, collected.after_each)


def test_there_is_a_first_and_a_last_sample_however_short_the_run(sampler, collected):
    before = time.time_ns()
    sampler.start()
    middle = time.time_ns()
    sampler.stop()
    # THEN one was taken before `start` was over, one after `stop` had begun
    times = collected.column("nanoseconds")
    assert before <= times[0] <= middle <= times[-1] <= time.time_ns()


def test_a_sampler_that_was_never_started_still_takes_the_last_sample(sampler, collected):
    sampler.stop()
    assert len(collected.column("nanoseconds")) == 1


def test_columns_have_one_length_and_times_rise(sampler, collected, monkeypatch):
    monkeypatch.setattr(sampling, "WRITTEN_EVERY", 3)
    sampler.start()
    collected.wait_for(20)
    sampler.stop()
    assert len(collected.batches) > 5
    for batch in collected.batches:
        assert tuple(batch) == COLUMNS
        assert {len(column) for column in batch.values()} == {len(batch["nanoseconds"])}
        assert {column.dtype for column in batch.values()} == {np.dtype(np.int64)}
    times = collected.column("nanoseconds")
    assert times == sorted(times)
    # AND none is lost or handed on twice: those in the background, the first and the last
    assert len(times) == len(set(times)) == len(collected.peaks) + 2


def test_the_thread_ends(sampler, collected):
    sampler.start()
    threads = [one for one in threading.enumerate() if one.name == "snugly-sampler"]
    assert [one.daemon for one in threads] == [True]  # it never keeps a process from ending
    collected.wait_for(1)
    sampler.stop()
    assert not threads[0].is_alive()
    taken = len(collected.column("nanoseconds"))
    assert len(collected.peaks) + 2 == taken


def test_samples_are_handed_on_while_it_runs(sampler, collected, monkeypatch):
    # GIVEN a process that may be killed at any time
    monkeypatch.setattr(sampling, "WRITTEN_EVERY", 5)
    sampler.start()
    collected.wait_for(11)
    # THEN all but the last few have been handed on before the end
    with collected.changed:
        assert collected.changed.wait_for(lambda: len(collected.batches) >= 2, PATIENCE)
    assert len(collected.column("nanoseconds")) >= 10
    sampler.stop()


class Impatient(threading.Event):
    """Notes for how long it is waited on, and does not wait."""

    def __init__(self):
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout=None):
        self.waits.append(timeout)
        return self.is_set()


def test_the_rate_halves_again_and_again(sampler, collected, monkeypatch):
    # GIVEN that after four samples the rate is halved
    monkeypatch.setattr(sampling, "MOST_AT_ONE_RATE", 4)
    sampler._stop = Impatient()
    # WHEN many are taken
    sampler.start()
    collected.wait_for(15)
    sampler.stop()
    # THEN each fourth is followed by a pause of twice the length
    pauses = [wait / 0.001 for wait in sampler._stop.waits[:15]]
    assert pauses == pytest.approx([1] * 4 + [2] * 4 + [4] * 4 + [8] * 3)


def test_a_week_of_samples_is_not_many():
    # GIVEN the constants as they are
    seconds, samples, interval = 0.0, 0, sampling.INTERVAL
    while seconds < 7 * 24 * 3600:
        seconds += sampling.MOST_AT_ONE_RATE * interval
        samples += sampling.MOST_AT_ONE_RATE
        interval *= 2
    assert samples * 8 * len(COLUMNS) < 16 << 20


def test_the_memory_of_this_process_is_what_the_system_says(sampler, collected):
    sampler.sample()
    held = np.ones(64 << 20, np.uint8)
    sampler.sample()
    sampler.stop()
    before, after, _ = collected.column("process")
    # THEN 64 MiB more, give or take what others in this process free meanwhile
    assert 48 << 20 < after - before < 200 << 20
    assert held[-1] == 1
    assert 1 << 20 < before < psutil.virtual_memory().total


def test_the_peak_is_handed_to_whoever_decides_about_windows(sampler, collected):
    sampler.start()
    collected.wait_for(2)
    sampler.stop()
    assert set(collected.peaks) <= set(collected.column("peak"))


FRESH = """
import json, sys
from snugly.recording.sampling import Sampler
batches = []
sampler = Sampler(batches.append, lambda peak: None)
sampler.start()
{work}
sampler.stop()
columns = {{name: sum((batch[name].tolist() for batch in batches), []) for name in batches[0]}}
print(json.dumps([columns, "tensorflow" in sys.modules]))
"""
TENSORFLOW = """
import tensorflow as tf
held = tf.ones((512, 512))
sampler.sample()
"""


def run_fresh(work):
    settings = {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    run = subprocess.run(
        [sys.executable, "-c", FRESH.format(work=work)],
        env=os.environ | settings | {"CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(run.stdout.splitlines()[-1])


def test_without_tensorflow_what_it_would_say_is_unknown():
    columns, is_loaded = run_fresh("")
    assert not is_loaded
    assert set(columns["in_use"]) == set(columns["peak"]) == set(columns["card"]) == {-1}
    assert min(columns["process"]) > 1 << 20


@pytest.mark.tensorflow
def test_with_tensorflow_the_allocator_is_read_as_soon_as_there_is_one():
    columns, is_loaded = run_fresh(TENSORFLOW)
    assert is_loaded
    assert columns["in_use"][0] == -1
    assert columns["in_use"][-1] >= 512 * 512 * 4
    known = [pair for pair in zip(columns["in_use"], columns["peak"], strict=True) if pair[0] >= 0]
    assert all(in_use <= peak for in_use, peak in known)
    assert set(columns["card"]) == {-1}
