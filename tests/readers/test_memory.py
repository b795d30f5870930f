"""Predicting never allocates what it predicts."""

import json
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.tensorflow

GIGABYTE = 10**9
# TensorFlow itself takes about half of this before anything is predicted.
MOST_OF_ITS_OWN = 1.3 * 2**30

# Weights of 40 GB: 100 layers would do as well as one, but one is the harder case.
SCRIPT = """
import keras

def build():
    model = keras.Sequential([keras.Input((100_000,)), keras.layers.Dense(100_000, name="huge")])
    model.compile("adam", "mse")
    return model
"""
# Address space would be the wrong limit (TensorFlow reserves a lot of it); data is what is used.
CHILD = """
import json
import resource
import sys

resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
import snugly

def highest():  # not ru_maxrss, in which the parent's memory counts
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

predictions = [
    snugly.predict(sys.argv[1], batch_size=1, training=training) for training in (False, True)
]
print(json.dumps({
    "resident": [int(prediction.resident) for prediction in predictions],
    "peak": [int(prediction.peak) for prediction in predictions],
    "own": highest(),
}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: /proc and RLIMIT_DATA")
def test_a_model_larger_than_this_machine_is_predicted_in_a_gigabyte(tmp_path):
    # GIVEN a model with 40 GB of weights, and a process that may use 4 GiB
    script = tmp_path / "huge.py"
    script.write_text(textwrap.dedent(SCRIPT))
    # WHEN its inference and its training step are predicted
    child = subprocess.run(
        [sys.executable, "-c", CHILD, f"{script}:build"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    result = json.loads(child.stdout)
    # THEN the weights are predicted, in training with two slots for each
    inference, training = result["resident"]
    assert inference == pytest.approx(40 * GIGABYTE, rel=0.01)
    assert training == pytest.approx(120 * GIGABYTE, rel=0.01)
    # AND the prediction itself took next to nothing
    assert result["own"] < MOST_OF_ITS_OWN
