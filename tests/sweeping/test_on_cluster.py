"""sweep on a real cluster: the same table, by workers that find the models themselves."""

import operator
import os
import subprocess
import sys

import dask
import pytest
from distributed import Client, LocalCluster
from tests.engines.test_fitness import packages_in, worker_with
from tests.lite.conftest import build, dense

import snugly
from snugly.engines import Task
from snugly.errors import InputError
from snugly.sweeping.work import Work

DEVICES = ["t4", "raspberry-pi-4-4gb"]


@pytest.mark.usefixtures("folder")
def test_a_cluster_gives_the_same_table(engine, script):
    # GIVEN a script by its path here, a module of this folder, a .tflite, and what is missing
    (script.parent / "dense.tflite").write_bytes(build(dense()))
    models = ["models_of_sweeps.py:small", "models_of_sweeps:large", "dense.tflite", "no.keras"]
    options = {"batch_sizes": [1, 8], "devices": DEVICES, "training": False}
    # WHEN they are swept by two workers, and here
    away = snugly.sweep(models, engine=engine, largest=True, **options)
    here = snugly.sweep(models, largest=True, **options)
    # THEN all but messages with paths is the same
    assert [row.found for row in away.rows] == [row.found for row in here.rows]
    assert [row.verdict for row in away.rows] == [row.verdict for row in here.rows]
    assert [each.batch_size for each in away.largest] == [each.batch_size for each in here.largest]
    codes = [row.error and row.error.code for row in away.rows]
    assert codes == [row.error and row.error.code for row in here.rows]
    assert codes[:8] == [None] * 8
    assert codes[-4:] == ["SNG104"] * 4
    assert away.predictions == here.predictions
    assert away.engine == engine.title


@pytest.mark.usefixtures("folder")
def test_the_process_that_asks_loads_no_tensorflow(cluster, script):
    code = (
        "import sys, snugly\n"
        f"with snugly.engines.dask({cluster.scheduler_address!r}) as engine:\n"
        "    table = snugly.sweep('models_of_sweeps.py:small', batch_sizes=2, engine=engine)\n"
        "assert table.rows[0].peak > 0, table.rows[0]\n"
        "assert not {'tensorflow', 'keras'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=script.parent)


def test_a_file_that_only_this_process_sees_is_told_so(engine, tmp_path, monkeypatch):
    path = tmp_path / "model.keras"
    path.touch()
    run = engine.run

    def vanishing(tasks):
        """The file is here, but not when and where a worker looks for it."""
        path.unlink()
        for result in run(tasks):
            path.touch()
            yield result

    monkeypatch.setattr(engine, "run", vanishing)
    (row,) = snugly.sweep(path, batch_sizes=1, engine=engine).rows
    assert row.error.code == "SNG104"
    assert "a worker does not see it" in row.error.hint


def test_objects_of_this_process_are_refused_with_a_way_out(engine):
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name="mine")
    with pytest.raises(InputError, match="'mine' is an object of this process") as caught:
        snugly.sweep([model, "model.keras"], batch_sizes=1, engine=engine)
    assert caught.value.code == "SNG587"


def test_a_task_that_kills_its_worker_is_a_refusal_and_the_others_go_on():
    # GIVEN a cluster that gives up on a task after its first death
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        work = Work(snugly.engines.dask(client), {}, [])
        # WHEN one of three tasks ends the process that it runs in
        tasks = [
            Task("sum", operator.add, (1, 2)),
            Task("deadly", os._exit, (3,)),
            Task("product", operator.mul, (2, 3)),
        ]
        found = dict(work._run(tasks))
    # THEN the others have their answers
    assert (found["sum"], found["product"]) == (3, 6)
    assert found["deadly"].code == "SNG585"


def test_workers_without_tensorflow_are_named_where_it_is_needed(tmp_path):
    lite = tmp_path / "dense.tflite"
    lite.write_bytes(build(dense()))
    with (
        LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as cluster,
        worker_with(packages_in(tmp_path / "packages", None), cluster.scheduler_address),
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(1, timeout=60)
        engine = snugly.engines.dask(client)
        with pytest.raises(InputError, match="TensorFlow is not installed on tcp://") as caught:
            snugly.sweep("model.keras", batch_sizes=1, engine=engine)
        # A .tflite file does not need it.
        (row,) = snugly.sweep(lite, devices="esp32-s3", engine=engine).rows
    assert caught.value.code == "SNG582"
    assert row.verdict == "fits"
