"""Jacobians on a real cluster: those of one machine, lazy or written by the workers."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import zarr
from dask import array as dask_array
from distributed import Client, LocalCluster, get_task_stream

import snugly
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.jacobians import JacobianWarning, on_workers, shipping

sys.path.insert(0, str(Path(__file__).parent))
import programs

BATCH = programs.numbers(6, programs.INPUTS)

CASES = {
    "examples apart": (programs.dense, BATCH, {}),
    "per example": (programs.dense, BATCH, {"per_example": True}),
    "columns apart": (programs.dense, BATCH, {"mode": "forward", "per_example": True}),
    "mixing": (programs.mixing, BATCH, {}),
    "columns": (programs.mixing, BATCH, {"mode": "forward"}),
    "convolution": (programs.convolved, programs.numbers(2, 6, 6, 2), {}),
    "by weights": (programs.dense, BATCH, {"wrt": [programs.LEFT, programs.RIGHT]}),
    "float64": (lambda x: tf.sin(x) * x[::-1], tf.cast(programs.numbers(40), tf.float64), {}),
    "one number": (lambda x: tf.reduce_sum(x**2), programs.numbers(20), {}),
}


def assert_same(found, expected):
    """To a relative error of 1e-5 of the largest: float32 sums in another order differ below."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", CASES)
def test_a_lazy_jacobian_is_that_of_one_machine(engine, name):
    f, x, options = CASES[name]
    lazy = snugly.jacobian(f, x, engine=engine, **options)
    expected = snugly.jacobian(f, x, **options)
    for found, part in zip(tf.nest.flatten(lazy), tf.nest.flatten(expected), strict=True):
        assert isinstance(found, dask_array.Array)
        assert "2 workers" in found.reason
        assert_same(found.compute(), part)


@pytest.mark.parametrize("name", ["examples apart", "per example", "columns", "by weights"])
@pytest.mark.parametrize("suffix", ["npy", "zarr"])
def test_workers_write_into_one_store(engine, tmp_path, name, suffix):
    f, x, options = CASES[name]
    found = snugly.jacobian(f, x, out=tmp_path / f"there.{suffix}", engine=engine, **options)
    expected = snugly.jacobian(f, x, out=tmp_path / f"here.{suffix}", **options)
    assert_same(found, expected)
    assert found.plan.streamed
    if suffix == "zarr":
        assert_same(zarr.open_array(str(tmp_path / "there.zarr"), mode="r"), expected)
    # The journal goes when all is written.
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"here.{suffix}", f"there.{suffix}"]


def test_structures_stay_as_they_are(engine):
    x = {"a": programs.numbers(4), "b": programs.numbers(4, seed=9)}
    with pytest.warns(JacobianWarning, match="no path"):
        found = snugly.jacobian(programs.named, x, engine=engine)
    assert set(found) == {"product", "sum"}
    assert_same(found["product"]["b"].compute(), np.diag(x["a"].numpy()))
    assert_same(found["sum"]["b"].compute(), np.zeros(4, np.float32))


def test_only_the_blocks_that_are_asked_for_are_computed(engine):
    lazy = snugly.jacobian(programs.mixing, BATCH, engine=engine)
    with get_task_stream(engine.client) as ran:
        found = lazy[:1, :5].compute()
    assert lazy.npartitions > 1
    assert sum("give_block" in str(task["key"]) for task in ran.data) == 1
    assert_same(found, snugly.jacobian(programs.mixing, BATCH)[:1, :5])


def test_columns_are_chosen_for_lazy_results_where_they_are_fewer(engine):
    weights = programs.numbers(3, 500)
    lazy = snugly.jacobian(lambda x: tf.tanh(x @ weights), programs.numbers(1, 3), engine=engine)
    assert lazy.plan.mode == "forward"
    assert "when asked for" in str(lazy.plan)


def test_the_chains_of_this_process_give_the_same(tmp_path):
    found = snugly.jacobian(
        programs.mixing, BATCH, out=tmp_path / "j.npy", engine=snugly.engines.this_process()
    )
    assert_same(found, snugly.jacobian(programs.mixing, BATCH))


def test_a_second_call_makes_no_other_plan_although_workers_hold_more_by_then(engine):
    first, second = (snugly.jacobian(programs.mixing, BATCH, engine=engine) for _ in range(2))
    assert second.plan.portions is first.plan.portions


def test_workers_open_a_program_once_and_use_it_with_the_weights_of_each_call(engine, tmp_path):
    def opened():
        return {digest: id(program) for digest, program in on_workers._programs.items()}

    weights = tf.Variable(programs.numbers(programs.INPUTS, 7, seed=11))

    def f(x):
        return x[::-1] @ weights

    snugly.jacobian(f, BATCH, out=tmp_path / "first.npy", engine=engine)
    first = engine.everywhere(opened)
    weights.assign(3 * weights)
    found = snugly.jacobian(f, BATCH, out=tmp_path / "second.npy", engine=engine)
    assert engine.everywhere(opened) == first
    assert any(first.values())
    assert_same(found, snugly.jacobian(f, BATCH))
    # A worker without room for them keeps none.
    engine.everywhere(on_workers.ready, 1, 0)
    assert not any(engine.everywhere(opened).values())


def test_a_program_hands_on_what_it_is_given():
    program = tf.function(lambda x, y: (y, x + y, x)).get_concrete_function(
        tf.TensorSpec((2,)), tf.TensorSpec((2,))
    )
    package = shipping.pack(program, "f")
    run = shipping.bound(shipping.unpack(package), package, {})
    found = [part.numpy().tolist() for part in run([tf.constant([1.0, 2.0]), tf.ones(2)])]
    assert found == [[1.0, 1.0], [2.0, 3.0], [1.0, 2.0]]


def test_tensorflow_has_its_share_of_threads_in_workers(engine):
    snugly.jacobian(programs.dense, BATCH, engine=engine)
    threads = engine.everywhere(tf.config.threading.get_intra_op_parallelism_threads)
    assert set(threads.values()) == {1}


def test_a_worker_killed_half_way_costs_time_and_nothing_else(engine, tmp_path):
    victims = list(engine.everywhere(os.getpid).values())[:1]

    def kill(share):
        if victims and share > 0.2:
            os.kill(victims.pop(), signal.SIGKILL)

    # WHEN a worker is killed once some pieces are written
    found = snugly.jacobian(
        programs.mixing, BATCH, out=tmp_path / "j.zarr", engine=engine, progress=kill
    )
    # THEN the result is whole
    assert not victims
    assert_same(found, snugly.jacobian(programs.mixing, BATCH))


CLIENT = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import programs, snugly

noted = []

def die(share):
    if noted:
        os.kill(os.getpid(), signal.SIGKILL)
    if share > 0.4:
        time.sleep(1.2)  # what is finished is noted once a second, after this call
        noted.append(share)

x = programs.numbers(6, programs.INPUTS)
with snugly.engines.dask(sys.argv[2]) as engine:
    snugly.jacobian(programs.mixing, x, out=sys.argv[3], engine=engine, progress=die)
"""


def test_a_killed_client_is_followed_by_one_that_goes_on(engine, cluster, tmp_path):
    # GIVEN a client that was killed after 0.4 of the work
    path, shares = tmp_path / "j.npy", []
    folder = str(Path(__file__).parent)
    command = [sys.executable, "-c", CLIENT, folder, cluster.scheduler_address, str(path)]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    assert path.with_name("j.npy.progress").exists()
    # WHEN the same call is made again, in another process
    found = snugly.jacobian(programs.mixing, BATCH, out=path, engine=engine, progress=shares.append)
    # THEN it begins where the first one ended
    assert 0.4 < shares[0] < 1
    assert_same(found, snugly.jacobian(programs.mixing, BATCH))
    assert not path.with_name("j.npy.progress").exists()


def test_workers_with_less_memory_go_on_where_others_stopped(engine, tmp_path, monkeypatch):
    # GIVEN a call that was stopped half way
    path, shares = tmp_path / "j.npy", []

    def stop(share):
        if share > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snugly.jacobian(programs.mixing, BATCH, out=path, engine=engine, progress=stop)
    # WHEN the next one has a plan that makes activations again, in smaller chunks
    matrix = sys.modules["snugly.jacobians.matrix"]
    settle = matrix.settle

    def tighter(*arguments):
        plan = settle(*arguments)
        (portion,) = plan.portions
        return replace(plan, segments=3, chunk=1, portions=(replace(portion, chunk=1),))

    monkeypatch.setattr(matrix, "settle", tighter)
    found = snugly.jacobian(programs.mixing, BATCH, out=path, engine=engine, progress=shares.append)
    # THEN it goes on, and the whole is right
    assert 0.4 < shares[0] < 1
    monkeypatch.undo()
    assert_same(found, snugly.jacobian(programs.mixing, BATCH))


def test_warnings_point_at_the_line_that_asked(engine, tmp_path):
    for options in ({}, {"engine": engine}, {"engine": engine, "out": tmp_path / "j.npy"}):
        with pytest.warns(JacobianWarning, match="SNG522") as caught:
            snugly.jacobian(lambda _: tf.ones(2), BATCH, **options)
        assert {warning.filename for warning in caught} == {__file__}


def test_another_function_does_not_go_on_where_one_stopped(engine, tmp_path):
    path = tmp_path / "j.npy"

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snugly.jacobian(programs.mixing, BATCH, out=path, engine=engine, progress=stop)
    assert path.with_name("j.npy.progress").exists()
    with pytest.raises(InputError, match="exists") as caught:
        snugly.jacobian(programs.mixing, 2 * BATCH, out=path, engine=engine)
    assert caught.value.code == "SNG524"


def refusal(*arguments, **options):
    with pytest.raises(InputError) as caught:
        snugly.jacobian(*arguments, **options)
    return caught.value


def test_a_store_that_cannot_be_written_is_refused_before_the_work(engine, tmp_path):
    missing = refusal(programs.dense, BATCH, out=tmp_path / "no" / "j.zarr", engine=engine)
    assert (missing.code, "no folder" in str(missing)) == ("SNG527", True)
    for suffix in ("npy", "zarr"):
        assert refusal(programs.dense, BATCH, out=f"/proc/j.{suffix}", engine=engine).code in {
            "SNG583",
            "SNG527",
        }


@pytest.mark.parametrize("limit", ["128MiB", "64MiB in this process"])
def test_a_limit_below_one_block_names_the_least_that_would_do(limit):
    # The process of the first one ends while it loads TensorFlow; Dask sees to that.
    size, *here = limit.split(maxsplit=1)
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=not here,
            memory_limit=size,
            dashboard_address=":0",
            silence_logs=50,
        ) as tiny,
        Client(tiny, set_as_default=False) as client,
    ):
        error = refusal(programs.dense, BATCH, engine=snugly.engines.dask(client))
    assert error.code == "SNG584"
    assert "one block of this Jacobian takes" in str(error)
    assert "--memory-limit" in error.hint


def test_a_stated_budget_is_each_workers(engine):
    with pytest.raises(MemoryLimitExceeded, match="at least"):
        snugly.jacobian(programs.dense, BATCH, memory=64, engine=engine)


def test_what_only_this_process_has_is_not_sent(engine):
    def from_python(x):
        return tf.ensure_shape(tf.py_function(tf.identity, [x], tf.float32), (4,)) * x

    entries = tf.lookup.KeyValueTensorInitializer(tf.range(4), programs.numbers(4))
    table = tf.lookup.StaticHashTable(entries, 0.0)

    def from_table(x):
        return table.lookup(tf.range(4)) * x

    for f, named in ((from_python, "EagerPyFunc"), (from_table, "LookupTableFindV2")):
        error = refusal(f, programs.numbers(4), engine=engine)
        assert error.code == "SNG586"
        assert named in str(error)


def test_random_numbers_are_refused(engine):
    error = refusal(lambda x: x * tf.random.normal((4,)), programs.numbers(4), engine=engine)
    assert error.code == "SNG528"


def test_engines_and_sparsity_do_not_go_together(engine):
    assert refusal(programs.dense, BATCH, engine=engine, sparsity="detect").code == "SNG587"
    assert refusal(programs.dense, BATCH, engine="tcp://x").code == "SNG587"
