"""A small real cluster for the tests of a module, in processes of its own."""

import os

import dask
import pytest
from distributed import Client, LocalCluster

import snugly


# One for each module: the room's next neighbours look at all processes below their own.
@pytest.fixture(scope="module")
def cluster():
    # Workers inherit it; TensorFlow's greetings are nothing to read in a test's output.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # A killed worker is given up after 15 seconds, within which a busy machine starts no other one.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        memory_limit="1.5GiB",
        dashboard_address=":0",
        silence_logs=50,
    ) as started:
        yield started


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as connected:
        yield connected


@pytest.fixture
def engine(client):
    client.wait_for_workers(2, timeout=60)
    return snugly.engines.dask(client)
