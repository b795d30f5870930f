"""Workers that lack TensorFlow, or have another one, are refused by name, before anything runs."""

import contextlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import tensorflow as tf
from distributed import Client, LocalCluster

import snugly
from snugly.engines import fitness, folders
from snugly.errors import InputError


@contextlib.contextmanager
def worker_with(packages, scheduler):
    """A real worker process that finds its packages in a folder, and nowhere else."""
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [sys.executable, "-S", "-m", "distributed.cli.dask_worker", scheduler]
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "1GiB"]
    process = subprocess.Popen(
        [*command, *options], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def packages_in(folder, version):
    """This environment's packages by links, with TensorFlow of some version, or without it."""
    folder.mkdir()
    for item in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not item.name.startswith("tensorflow"):
            (folder / item.name).symlink_to(item)
    if not (folder / "snugly").exists():  # installed for editing
        (folder / "snugly").symlink_to(Path(snugly.__file__).parent)
    if version is not None:
        about = folder / f"tensorflow-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: tensorflow\nVersion: {version}\n"
        )
    return folder


@pytest.mark.parametrize("version", [None, "2.3.4"])
def test_a_worker_without_tensorflow_or_with_another_one_is_named(tmp_path, version):
    # GIVEN a cluster with one worker that has other packages
    with (
        LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as cluster,
        worker_with(packages_in(tmp_path / "packages", version), cluster.scheduler_address),
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(1, timeout=60)
        engine = snugly.engines.dask(client)
        # WHEN work is given to it THEN it is refused if it needs TensorFlow, and only then
        with pytest.raises(InputError) as caught:
            snugly.jacobian(lambda x: x**2, tf.ones(3), engine=engine)
        assert float(snugly.linalg.slogdet([[2.0]], engine=engine).sign) == 1.0
    error = caught.value
    assert error.code == "SNG582"
    assert "tcp://" in str(error)
    if version is None:
        assert "TensorFlow is not installed" in str(error)
        assert error.hint == f"pip install tensorflow=={fitness.tensorflow_version()}"
    else:
        assert f"but {version} on tcp://" in str(error)


def test_the_version_is_that_of_the_package_that_brings_tensorflow():
    assert fitness.tensorflow_version() == tf.__version__


def test_a_folder_that_is_another_one_there_is_told_apart(tmp_path):
    token = tmp_path / ".snugly-token"
    assert "No such file" in folders.fault_of(str(token))
    token.write_text("of another folder")
    assert "another folder" in folders.fault_of(str(token))
    token.write_text(token.name)
    assert folders.fault_of(str(token)) == ""
