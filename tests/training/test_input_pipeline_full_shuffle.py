"""full_shuffle: every record once, in an order of all of them, and none held."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from snugly.errors import InputError
from snugly.training.input_pipeline import full_shuffle

pytestmark = pytest.mark.tensorflow


def write_records(path, records, **options):
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(**options)) as writer:
        for record in records:
            writer.write(record)
    return path


def test_every_record_of_every_file_comes_once(tmp_path):
    records = [f"record {number}".encode() * (number % 5) for number in range(1000)]
    first = write_records(tmp_path / "a", records[:300])
    second = write_records(tmp_path / "b", records[300:])
    dataset = full_shuffle([first, second], seed=1)
    found = [one.numpy() for one in dataset]
    assert sorted(found) == sorted(records)
    assert found != records
    assert int(dataset.cardinality()) == 1000


def test_rows_travel_as_far_as_they_like():
    # GIVEN rows in order WHEN all are shuffled THEN the mean way is a third of all, as by chance
    count = 20_000
    found = np.array(list(full_shuffle(np.arange(count), seed=5).as_numpy_iterator()))
    assert sorted(found) == list(range(count))
    assert np.abs(found - np.arange(count)).mean() == pytest.approx(count / 3, rel=0.05)


def test_epochs_differ_and_seeds_repeat(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(600, dtype=np.float32).reshape(300, 2))
    dataset = full_shuffle(path, seed=9)
    first, second = ([tuple(row) for row in dataset.as_numpy_iterator()] for _ in range(2))
    again = [tuple(row) for row in full_shuffle(path, seed=9).as_numpy_iterator()]
    assert first != second
    assert sorted(first) == sorted(second)
    assert first == again
    fixed = full_shuffle(path, seed=9, reshuffle_each_iteration=False)
    assert [tuple(row) for row in fixed.as_numpy_iterator()] == [
        tuple(row) for row in fixed.as_numpy_iterator()
    ]


def test_it_goes_on_as_any_dataset_does():
    batches = full_shuffle(np.ones((10, 3, 2), np.int16)).batch(4).prefetch(1)
    assert [tuple(batch.shape) for batch in batches] == [(4, 3, 2), (4, 3, 2), (2, 3, 2)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_rows_are_shuffled_too(count):
    assert sorted(full_shuffle(np.arange(count)).as_numpy_iterator()) == list(range(count))


def test_what_cannot_be_read_is_refused(tmp_path):
    records = [b"x" * 100] * 50
    squeezed = write_records(tmp_path / "gz", records, compression_type="GZIP")
    cut = write_records(tmp_path / "cut", records)
    cut.write_bytes(cut.read_bytes()[:-30])
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    pickled = tmp_path / "objects.npy"
    np.save(pickled, np.array([{}, {}], object), allow_pickle=True)
    for source in (squeezed, cut, empty, pickled, tmp_path / "none", tmp_path, [], 3, [3]):
        with pytest.raises((InputError, TypeError)) as error:
            full_shuffle(source)
        if isinstance(error.value, InputError):
            assert error.value.code == "SNG559"
    with pytest.raises(InputError):
        full_shuffle(np.array(3))


LARGE = """
import numpy as np, sys, tensorflow as tf
from snugly.devices.process import ResidentPeak, resident_bytes
from snugly.training.input_pipeline import full_shuffle
for _ in full_shuffle(np.arange(10)).batch(2): pass
before, watch = resident_bytes(), ResidentPeak()
count = 0
for batch in full_shuffle(sys.argv[1], seed=1).batch(4096).take(50):
    count += len(batch)
print(count, watch.read() - before)
"""


def test_fifty_million_records_stay_under_a_gibibyte(tmp_path):
    # GIVEN a file of 50 million records, written without holding it
    path = tmp_path / "rows.npy"
    rows = np.lib.format.open_memmap(path, "w+", np.int64, (50_000_000,))
    rows[:10] = 1
    rows.flush()
    del rows
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(path)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count, grown = map(int, done.stdout.split())
    assert count == 50 * 4096
    assert grown < 2**28  # a quarter of what is allowed
