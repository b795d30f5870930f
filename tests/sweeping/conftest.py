"""Models to sweep over, as files that other processes can find, and one small real cluster."""

import os

import pytest
from distributed import Client, LocalCluster

import snugly

SCRIPT = '''\
"""Models, and builders that fail in their own ways."""

import keras


def compiled(model):
    model.compile(optimizer="adam", loss="mse")
    return model


def small():
    layers = [keras.Input((32, 32, 3)), keras.layers.Conv2D(8, 3), keras.layers.Flatten()]
    return compiled(keras.Sequential([*layers, keras.layers.Dense(4)]))


def large():
    layers = [keras.Input((32, 32, 3)), keras.layers.Conv2D(32, 3), keras.layers.Conv2D(32, 3)]
    return compiled(keras.Sequential([*layers, keras.layers.Flatten(), keras.layers.Dense(4)]))


def fixed():
    return keras.Sequential([keras.Input(batch_shape=(4, 64)), keras.layers.Dense(64)])


def failing():
    raise OSError("no such data")


number = 3
'''


@pytest.fixture(scope="session")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "models_of_sweeps.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


@pytest.fixture
def folder(script, monkeypatch):
    """The folder of the script, as the current one."""
    monkeypatch.chdir(script.parent)
    return script.parent


# One for each module: the room's next neighbours look at all processes below their own.
@pytest.fixture(scope="module")
def cluster():
    # Workers inherit it; TensorFlow's greetings are nothing to read in a test's output.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with LocalCluster(
        n_workers=2,
        threads_per_worker=2,
        processes=True,
        memory_limit="2GiB",
        dashboard_address=":0",
        silence_logs=50,
    ) as started:
        yield started


@pytest.fixture
def engine(cluster):
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield snugly.engines.dask(client)
