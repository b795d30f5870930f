"""Jacobians on disk: right, in both formats, gone on with after a kill, and never overwritten."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from tests.jacobians.reference import by_rows

import snugly
from snugly.jacobians.known import known
from snugly.jacobians.stores import NpyStore
from snugly.jacobians.streaming import fingerprint_of

pytestmark = pytest.mark.tensorflow
WEIGHTS = tf.Variable(np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32))
X = tf.constant(np.random.default_rng(2).normal(size=(4, 5)).astype(np.float32))


def f(x):
    return tf.tanh(x @ WEIGHTS)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("per_example", [False, True])
@pytest.mark.parametrize("name", ["j.npy", "j.zarr"])
def test_the_file_has_the_jacobian(tmp_path, name, per_example, mode):
    found = snugly.jacobian(f, X, out=tmp_path / name, per_example=per_example, mode=mode)
    expected = by_rows(f, X)
    if per_example:
        expected = np.stack([expected[i, :, i] for i in range(4)])
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)
    assert found.plan.streamed
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]
    if name == "j.npy":
        np.testing.assert_array_equal(np.load(tmp_path / name), found)


def test_a_function_that_mixes_examples_is_streamed_by_whole_rows(tmp_path):
    def mixing(x):
        return f(x - tf.reduce_mean(x, 0))

    found = snugly.jacobian(mixing, X, "100KiB", out=tmp_path / "j.npy")
    np.testing.assert_allclose(found, by_rows(mixing, X), rtol=1e-5, atol=1e-6)


def test_all_weights_are_the_columns_of_one_matrix(tmp_path):
    bias = tf.Variable(tf.ones(3))
    model = lambda x: f(x) + bias  # noqa: E731 - a function as users write it
    found = snugly.jacobian(model, X, wrt=[WEIGHTS, bias], out=tmp_path / "j.npy")
    parts = [by_rows(model, X, variable).reshape(12, -1) for variable in (WEIGHTS, bias)]
    np.testing.assert_allclose(found, np.concatenate(parts, axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["j.npy", "j.zarr"])
def test_a_file_that_exists_is_kept_unless_told(tmp_path, name):
    snugly.jacobian(f, X, out=tmp_path / name)
    with pytest.raises(snugly.InputError, match="exists") as caught:
        snugly.jacobian(f, X, out=tmp_path / name)
    assert caught.value.code == "SNG524"
    snugly.jacobian(f, 2 * X, out=tmp_path / name, overwrite=True)
    again = snugly.jacobian(f, 2 * X, out=tmp_path / f"other-{name}")
    first = np.load(tmp_path / name) if name == "j.npy" else None
    if first is not None:
        np.testing.assert_array_equal(first, again)


def test_a_full_disk_is_said_before_anything_is_computed(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(snugly.InputError, match="No space left") as caught:
        snugly.jacobian(f, X, out=tmp_path / "j.npy")
    assert caught.value.code == "SNG527"
    assert not list(tmp_path.iterdir())


def test_after_a_disk_that_filled_half_way_the_same_call_goes_on(tmp_path, monkeypatch):
    # GIVEN a run that found the disk full in its second half
    write, written = NpyStore._put, []

    def failing(self, block, place):
        if len(written) == 6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(place)
        write(self, block, place)

    monkeypatch.setattr("snugly.jacobians.streaming._BETWEEN_NOTES", 0.0)
    monkeypatch.setattr(NpyStore, "_put", failing)

    def mixing(x):
        return f(x) * tf.reduce_sum(x)

    with pytest.raises(MemoryError) as refused:
        snugly.jacobian(mixing, X, 1, out=tmp_path / "j.npy")
    least = int(refused.value.hint.split("memory=")[1].split("`")[0])
    with pytest.raises(snugly.InputError, match="No space left"):
        snugly.jacobian(mixing, X, least, out=tmp_path / "j.npy")
    # WHEN there is room again THEN only what was missing is written
    done = json.loads((tmp_path / "j.npy.progress").read_text())["done"]
    assert done > 0
    monkeypatch.setattr(NpyStore, "_put", lambda *a: (written.append(a[2]), write(*a)))
    written.clear()
    found = snugly.jacobian(mixing, X, least, out=tmp_path / "j.npy")
    assert len(written) < 12
    np.testing.assert_allclose(found, by_rows(mixing, X), rtol=1e-5, atol=1e-6)


KILLED = """
import sys, time
import numpy as np, tensorflow as tf, snugly
weights = tf.Variable(np.random.default_rng(1).normal(0, 0.1, (40, 60)).astype("float32"))
x = tf.constant(np.random.default_rng(2).normal(size=(1, 40)).astype("float32"))
def slow(x):
    tf.py_function(lambda: time.sleep(float(sys.argv[2])), [], [])
    return tf.tanh(x @ weights)
first = []
snugly.jacobian(slow, x, 67_000, out=sys.argv[1], progress=first.append)
print("BEGAN AT", first[0])
"""


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    script, out = tmp_path / "run.py", tmp_path / "j.npy"
    script.write_text(KILLED)
    begun = subprocess.Popen([sys.executable, str(script), str(out), "0.25"])
    journal = tmp_path / "j.npy.progress"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if journal.exists() and json.loads(journal.read_text() or "{}").get("done", 0) > 0:
            break
        time.sleep(0.05)
    begun.send_signal(signal.SIGKILL)
    begun.wait()
    done = json.loads(journal.read_text())["done"]
    assert 0 < done < 60
    run = subprocess.run(
        [sys.executable, str(script), str(out), "0"], capture_output=True, text=True, check=True
    )
    assert float(run.stdout.split("BEGAN AT")[1]) > done / 60
    weights = np.random.default_rng(1).normal(0, 0.1, (40, 60)).astype("float32")
    x = np.random.default_rng(2).normal(size=(1, 40)).astype("float32")
    expected = ((1 - np.tanh(x @ weights) ** 2) * weights).T
    np.testing.assert_allclose(np.load(out).reshape(60, 40), expected, rtol=1e-4, atol=1e-6)
    assert not journal.exists()


def test_a_function_is_known_again_whatever_order_its_variables_have():
    # GIVEN a function of several variables, of which TensorFlow keeps a set: its order is another
    # one in each process
    weights = [tf.Variable(tf.fill((4, 4), float(number))) for number in range(6)]

    def layers(x):
        for weight in weights:
            x = tf.tanh(x @ weight)
        return x

    x = tf.ones((1, 4))
    about, plan = known(layers, x, None), snugly.jacobians.plan(layers, x)

    def fingerprint():
        return fingerprint_of(about.subject, plan, [x], None)

    first, graph = fingerprint(), about.subject.concrete.graph
    # WHEN that order is another THEN a killed run goes on
    graph.variables = tuple(reversed(graph.variables))
    assert fingerprint() == first
    # WHEN two of them have changed places, or one is another, THEN it does not
    weights[1].assign(tf.fill((4, 4), 2.0))
    weights[2].assign(tf.fill((4, 4), 1.0))
    assert fingerprint() != first
    weights[1].assign(tf.fill((4, 4), 1.0))
    weights[2].assign(tf.fill((4, 4), 2.0))
    assert fingerprint() == first
    weights[5].assign(tf.zeros((4, 4)))
    assert fingerprint() != first
