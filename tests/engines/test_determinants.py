"""Determinants on a cluster: those of one machine, for matrices that break other programs."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from dask import array as dask_array
from distributed import Client, LocalCluster

import snugly
from snugly.errors import InputError
from snugly.linalg import chains, on_cluster
from snugly.linalg.certainty import count_of_probes
from snugly.linalg.chains import Finished, Job
from snugly.linalg.shelf import Shelf
from snugly.linalg.sources import ArraySource
from snugly.units import Size

sys.path.insert(0, str(Path(__file__).parents[1] / "linalg"))
import matrices

SIZE = 1100  # above this one, matrices are cut into panels

CASES = {
    "random": lambda: matrices.random_matrix(SIZE),
    "float32": lambda: matrices.random_matrix(SIZE, "float32", seed=3),
    "complex": lambda: matrices.random_matrix(SIZE, "complex128"),
    "block swap": lambda: matrices.block_swap(SIZE),
    "permutation": lambda: matrices.permutation(SIZE),
    "constraints": lambda: matrices.kkt(SIZE),
    "tiny block": lambda: matrices.tiny_leading_block(SIZE),
    "by columns": lambda: np.asfortranarray(matrices.random_matrix(SIZE, seed=5)),
    "scaled": lambda: (
        matrices.random_matrix(SIZE, seed=6) * np.logspace(-150, 150, SIZE)[:, np.newaxis]
    ),
    "zero row": lambda: np.vstack([np.zeros(SIZE), matrices.random_matrix(SIZE)[1:]]),
    "singular": lambda: np.ones((SIZE, SIZE)),
    "stack": lambda: matrices.random_matrix(40, batch=(3, 5)),
    "small": lambda: np.diag([2.0, 3.0]),
}


def assert_same(found, expected):
    """Bit-identical signs of real matrices; logarithms within the error bars of both."""
    if np.asarray(expected.sign).dtype.kind == "c":
        assert abs(found.sign - expected.sign) <= found.error + expected.error
    else:
        np.testing.assert_array_equal(found.sign, expected.sign)
    np.testing.assert_array_equal(found.sign_certain, expected.sign_certain)
    both_known = np.isfinite(expected.error) & np.isfinite(expected.logabs)
    np.testing.assert_array_equal(np.isfinite(found.error), np.isfinite(expected.error))
    distance = np.abs(np.where(both_known, np.subtract(found.logabs, expected.logabs), 0.0))
    assert (distance <= np.asarray(found.error) + expected.error).all()


@pytest.mark.parametrize("name", CASES)
def test_a_cluster_gives_what_one_machine_gives(engine, name):
    matrix = CASES[name]()
    with np.errstate(invalid="ignore"):  # infinity less infinity, in the comparison
        assert_same(snugly.linalg.slogdet(matrix, engine=engine), snugly.linalg.slogdet(matrix))


def test_the_chains_of_tasks_give_the_same_in_this_process():
    matrix = matrices.kkt(SIZE)
    found = snugly.linalg.slogdet(matrix, engine=snugly.engines.this_process())
    assert_same(found, snugly.linalg.slogdet(matrix))
    assert found.method == "panels"


def test_files_and_dask_arrays_are_read_by_the_workers(engine, tmp_path):
    matrix = matrices.random_matrix(SIZE, seed=7)
    expected = snugly.linalg.slogdet(matrix)
    np.save(tmp_path / "a.npy", matrix)
    stored = zarr.open_array(
        str(tmp_path / "a.zarr"), mode="w", shape=matrix.shape, chunks=(300, 400), dtype="float64"
    )
    stored[:] = matrix
    lazy = dask_array.from_zarr(str(tmp_path / "a.zarr"))
    for given in (tmp_path / "a.npy", str(tmp_path / "a.zarr"), lazy, lazy.T):
        found = snugly.linalg.slogdet(given, scratch=tmp_path, engine=engine)
        assert_same(found, expected)
    # Nothing is left behind.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "a.zarr"]


def test_a_dask_array_that_is_not_what_it_says_is_refused(engine, tmp_path):
    # GIVEN chunks of another shape, or another type, than the array says of them
    honest = dask_array.from_array(matrices.random_matrix(SIZE), chunks=500)
    short = honest.map_blocks(lambda chunk: chunk[:3], dtype="float64", chunks=honest.chunks)
    complex_ = honest.map_blocks(lambda chunk: 1j * chunk, dtype="float64")
    # WHEN its determinant is asked for THEN zeros and real parts do not take their place
    for array, code in ((short, "SNG501"), (complex_, "SNG502")):
        with pytest.raises(InputError, match="says that its chunk") as caught:
            snugly.linalg.slogdet(array, scratch=tmp_path, engine=engine)
        assert caught.value.code == code
    assert not list(tmp_path.iterdir())


def test_chunks_that_no_worker_can_hold_are_refused_before_they_are_computed(engine):
    lazy = dask_array.random.default_rng(1).standard_normal((15_000, 15_000), chunks=-1)
    with pytest.raises(InputError, match=r"chunk of 1\.7 GiB") as caught:
        snugly.linalg.slogdet(lazy, engine=engine)
    assert caught.value.code == "SNG584"
    assert "rechunk" in caught.value.hint


def test_what_kills_workers_while_a_dask_array_is_computed_ends_the_call(tmp_path):
    # GIVEN chunks that take their worker down
    lazy = dask_array.ones((SIZE, SIZE), chunks=SIZE).map_blocks(die, dtype="float64")
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(InputError, match="while they computed the Dask array") as caught,
    ):
        # WHEN a determinant waits for them THEN it does not wait for ever
        snugly.linalg.slogdet(
            lazy, scratch=tmp_path, engine=snugly.engines.dask(client, patience=5)
        )
    assert caught.value.code in {"SNG581", "SNG585"}
    assert not list(tmp_path.iterdir())


def die(chunk):
    if chunk.size > 1:  # Dask looks at the type with an empty one
        os.kill(os.getpid(), signal.SIGKILL)
    return chunk


def test_what_a_killed_call_kept_in_workers_is_freed_for_the_next(engine):
    # In here they are sent as code: workers cannot import tests.
    def leave_a_panel():
        chains._kept.append(chains._Panel("/gone", 0, np.empty(1), []))

    def held_panels():
        return len(chains._kept)

    # GIVEN panels that nobody freed
    engine.everywhere(leave_a_panel)
    assert set(engine.everywhere(held_panels).values()) == {1}
    # WHEN room is counted THEN they are not in it
    engine.everywhere(on_cluster._ready)
    assert set(engine.everywhere(held_panels).values()) == {0}


def test_a_matrix_is_named_by_its_own_place_where_it_is_not_finite(engine, tmp_path):
    matrix = matrices.random_matrix(SIZE)
    matrix[700, 11] = np.nan
    np.save(tmp_path / "a.npy", matrix)
    with pytest.raises(InputError, match=r"nan at \[700, 11\]") as caught:
        snugly.linalg.slogdet(tmp_path / "a.npy", engine=engine)
    assert caught.value.code == "SNG503"


def test_det_goes_the_same_way(engine):
    assert float(snugly.linalg.det([[1.0, 2.0], [3.0, 4.0]], engine=engine)) == -2.0


def test_a_file_that_workers_do_not_see_is_named(engine, tmp_path):
    with pytest.raises(InputError) as caught:
        snugly.linalg.slogdet(tmp_path / "none.npy", engine=engine)
    assert caught.value.code == "SNG504"
    with pytest.raises(InputError) as caught:
        snugly.linalg.slogdet(matrices.random_matrix(SIZE), scratch="/nowhere", engine=engine)
    assert caught.value.code == "SNG505"


def test_a_limit_below_one_block_names_the_least_that_would_do():
    with (
        LocalCluster(
            n_workers=1, processes=False, memory_limit="64MiB", dashboard_address=":0"
        ) as tiny,
        Client(tiny, set_as_default=False) as client,
    ):
        engine = snugly.engines.dask(client)
        for matrix in (matrices.random_matrix(SIZE), [[2.0]]):
            with pytest.raises(InputError, match="the least is") as caught:
                snugly.linalg.slogdet(matrix, engine=engine)
            assert caught.value.code == "SNG584"
            assert "--memory-limit" in caught.value.hint


def test_where_no_panel_fits_a_worker_tiles_are_factored_by_tournament(monkeypatch):
    # Real panels are too narrow from 3,500 rows on; here, all are taken to be.
    monkeypatch.setattr(sys.modules["snugly.linalg.plan"], "_NARROWEST", SIZE)
    matrix = matrices.kkt(SIZE)
    found = snugly.linalg.slogdet(matrix, memory="6MiB", engine=snugly.engines.this_process())
    assert found.method == "tiles"
    assert_same(found, snugly.linalg.slogdet(matrix))


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_task_may_run_twice_and_begin_in_the_middle(tmp_path, forgotten):
    # GIVEN a matrix in four panels
    matrix = matrices.random_matrix(200)
    source = ArraySource(matrix)
    shelf = Shelf(str(tmp_path), 200, 50, 16, source.working, count_of_probes(200))
    job = Job(source, 0, shelf)
    chains.save_scales(shelf, np.abs(matrix).max(axis=0), None)
    # WHEN every task runs twice, and what was kept in memory is gone or not
    found = {}
    for task in on_cluster._tasks(job, workers=3):
        for _ in range(2):
            result = task.function(*task.arguments)
            if forgotten:
                chains.forget(shelf.folder)
        if isinstance(result, Finished):
            found[result.number] = result
    # THEN the pivots are those of the whole matrix
    diagonal = np.concatenate([found[number].diagonal for number in range(4)])
    expected = np.linalg.slogdet(matrix)[1]
    assert abs(np.log(np.abs(diagonal)).sum() - expected) < 1e-11  # 200 roundings of a sum of 430
    chains.forget(shelf.folder)


def test_of_two_workers_that_write_one_panel_the_first_counts(tmp_path):
    shelf = Shelf(str(tmp_path), 8, 4, 4, np.dtype("float64"), 2)
    buffer, columns = np.empty(16), np.asfortranarray(np.ones((8, 4)))
    for number in (1.0, 2.0):
        head = chains.Head(np.arange(4), np.full(4, number), np.full((4, 2), number))
        shelf.publish(0, head, columns, buffer)
    assert shelf.head(0).diagonal.tolist() == [1.0] * 4
    assert [path.name for path in tmp_path.iterdir()] == ["panel-000000"]


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 16])
def test_chains_wait_only_for_tasks_that_came_before(workers):
    shelf = Shelf("/nowhere", 1000, 30, 16, np.dtype("float64"), 8)
    given, last = set(), {}
    for task in on_cluster._tasks(Job(ArraySource(np.eye(2)), 0, shelf), workers):
        _, number, until = task.arguments
        assert set(task.after) <= given
        # All panels that it applies are finished, and its own earlier stages have run.
        assert until == 0 or f"panel-{until - 1}-{until - 1}" in task.after
        assert number not in last or f"panel-{number}-{last[number]}" in task.after
        given.add(task.key)
        last[number] = until
    assert last == {number: number for number in range(shelf.count)}


def test_a_worker_killed_half_way_costs_time_and_nothing_else(engine):
    # GIVEN a matrix in some panels
    matrix = matrices.random_matrix(2000, seed=9)
    victims = list(engine.everywhere(os.getpid).values())[:1]

    def kill(share):
        if victims and share > 0.05:
            os.kill(victims.pop(), signal.SIGKILL)

    # WHEN a worker is killed once some are finished
    found = snugly.linalg.slogdet(matrix, engine=engine, progress=kill)
    # THEN the result is that of one machine
    assert not victims
    assert_same(found, snugly.linalg.slogdet(matrix))


def test_no_worker_exceeds_its_limit_and_little_is_written(engine, tmp_path, monkeypatch):
    size, written = 2400, []
    np.save(tmp_path / "a.npy", matrices.random_matrix(size))
    run = type(engine).run

    def watched(self, tasks):
        for key, result in run(self, tasks):
            written.append(getattr(result, "written", 0))
            yield key, result

    monkeypatch.setattr(type(engine), "run", watched)
    snugly.linalg.slogdet(tmp_path / "a.npy", memory="24MiB", scratch=tmp_path, engine=engine)
    needed = on_cluster.bytes_needed(size, 8)
    assert needed < sum(written) <= 1.3 * needed
    peaks = engine.everywhere(chains.forget, "").values()
    assert max(peaks) < Size("1.5GiB")
