"""Tasks on a real cluster: order, results, errors, what lies ready in workers, and fitness."""

import operator
import os
import subprocess
import sys
import time

import pytest
from distributed import Client, LocalCluster

import snugly
from snugly.engines import Task, fitness, provided, running
from snugly.engines.engine import Worker, checked, limit_for, room_of, smallest_room
from snugly.errors import InputError
from snugly.units import Size


def both(engine):
    return [snugly.engines.this_process(), engine]


def test_workers_have_the_limits_that_the_scheduler_knows(engine):
    workers = engine.workers()
    assert [worker.memory_limit for worker in workers] == [Size("1.5GiB")] * 2
    assert [worker.threads for worker in workers] == [1, 1]


def test_workers_are_found_fit_once(engine, monkeypatch):
    engine.workers()
    monkeypatch.setattr(
        "snugly.engines.cluster.check_versions", lambda *_, **__: pytest.fail("asked again")
    )
    assert len(engine.workers()) == 2


def test_both_engines_run_a_task_after_those_it_waits_for(engine, tmp_path):
    # Each task makes a folder inside the one that the task before it made.
    for number, each in enumerate(both(engine)):
        path = tmp_path / str(number)
        tasks = [
            Task("a", os.mkdir, (str(path),)),
            Task("b", os.mkdir, (str(path / "b"),), after=("a",), place=1),
            Task("c", os.mkdir, (str(path / "b" / "c"),), after=("a", "b"), place=0),
            Task("sum", operator.add, (1, 2)),
        ]
        assert dict(each.run(tasks)) == {"a": None, "b": None, "c": None, "sum": 3}
        assert (path / "b" / "c").is_dir()


def test_what_has_ended_is_not_done_again_when_its_worker_dies(engine):
    # GIVEN a task that ended, while another one still runs
    tasks = [Task("quick", operator.add, (1, 2)), Task("slow", time.sleep, (3,))]
    under_way = engine.run(tasks)
    assert next(under_way) == ("quick", 3)
    # THEN Dask keeps nothing of it, so that there is nothing to be computed anew
    deadline = time.monotonic() + 2
    while kept := [key for key in engine.client.has_what().values() if "quick" in str(key)]:
        assert time.monotonic() < deadline, kept
        time.sleep(0.05)
    assert list(under_way) == [("slow", None)]


def test_what_is_provided_lies_ready_in_every_worker_until_it_is_withdrawn(engine):
    for each in both(engine):
        each.provide("snugly-test", [1, 2])
        assert all(
            found == [1, 2] for found in each.everywhere(provided.get, "snugly-test").values()
        )
        each.withdraw("snugly-test")
        with pytest.raises(KeyError):
            each.everywhere(provided.get, "snugly-test")


def test_what_a_killed_client_provided_is_withdrawn_by_the_next(engine, cluster):
    def ready_names():  # in here it is sent as code: workers cannot import tests
        return sorted(provided._ready)

    # GIVEN a client that was killed while something of its own lay ready in the workers
    program = (
        "import os, signal, sys, snugly\n"
        "engine = snugly.engines.dask(sys.argv[1])\n"
        "engine.provide('left', bytes(1000))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program, cluster.scheduler_address], check=False)
    engine.provide("ours", 1)
    assert set(map(tuple, engine.everywhere(ready_names).values())) == {("left", "ours")}
    # WHEN another one asks for workers THEN it is gone, and nothing else
    for _ in range(100):  # the scheduler may not have noticed yet
        engine.workers()
        names = set(map(tuple, engine.everywhere(ready_names).values()))
        if names == {("ours",)}:
            break
        time.sleep(0.1)
    engine.withdraw("ours")
    assert names == {("ours",)}


def test_everywhere_means_once_in_each_process(engine):
    found = engine.everywhere(os.getpid)
    assert len(set(found.values())) == 2
    assert os.getpid() not in found.values()


def test_an_error_of_a_task_comes_back_as_it_was_raised(engine):
    tasks = [Task("bad", Size, ("4 bananas",)), Task("never", operator.add, (1, 2), after=("bad",))]
    with pytest.raises(snugly.InputError) as caught:
        list(engine.run(tasks))
    assert caught.value.code == "SNG004"


def test_a_cluster_without_workers_says_so():
    with (
        LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as empty,
        Client(empty, set_as_default=False) as client,
        pytest.raises(InputError) as caught,
    ):
        snugly.engines.dask(client, patience=0.2).workers()
    assert caught.value.code == "SNG581"


def test_workers_that_are_all_paused_are_waited_for_in_vain_only_so_long():
    # GIVEN a worker whose process holds more than 0.8 of its limit already, so that Dask pauses it
    with (
        LocalCluster(
            n_workers=1, processes=False, memory_limit="64MiB", dashboard_address=":0"
        ) as full,
        Client(full, set_as_default=False) as client,
    ):
        (worker,) = full.workers.values()
        while worker.status.name != "paused":
            time.sleep(0.05)
        engine = snugly.engines.dask(client, patience=1)
        with pytest.raises(InputError, match="paused for 1 seconds") as caught:
            list(engine.run([Task("sum", operator.add, (1, 2))]))
    assert caught.value.code == "SNG584"
    assert "client.restart()" in caught.value.hint


def test_tasks_that_wait_at_a_paused_worker_are_done_by_another_one(monkeypatch):
    monkeypatch.setattr(running, "_NAP", 0.5)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            memory_limit="400MiB",
            dashboard_address=":0",
            silence_logs=50,
        ) as two,
        Client(two, set_as_default=False) as client,
    ):
        engine = snugly.engines.dask(client)
        name = min(engine.everywhere(os.getpid))

        def fill():
            provided.put("ballast", b"1" * (270 << 20))

        # GIVEN a chain of tasks that prefer a worker, of which the second waits there for its turn
        tasks = [
            Task("first", time.sleep, (1.5,), place=0),
            Task("second", operator.add, (1, 2), place=0),
            Task("third", operator.add, (3, 4), after=("second",), place=0),
        ]
        under_way = running.Run(client, tasks, [name])
        while len(client.processing()[name]) < 2:
            time.sleep(0.02)
        # WHEN that worker is filled above 0.8 of its limit, for good
        client.run(fill, workers=[name])
        found = {}
        deadline = time.monotonic() + 20
        while not under_way.is_over and time.monotonic() < deadline:
            found.update(under_way.ended())
            under_way.look_after(client.scheduler_info(n_workers=-1)["workers"])
            time.sleep(0.1)
        # THEN all of them end, the one that had begun where it was
        assert {key: future.result() for key, future in found.items()} == {
            "first": None,
            "second": 3,
            "third": 7,
        }
        assert client.who_has([found["first"]])[found["first"].key] == (name,)
        assert client.who_has([found["second"]])[found["second"].key] != (name,)


def test_a_worker_that_dies_while_it_is_asked_is_told_of(engine):
    with pytest.raises(InputError, match="died while it was made ready") as caught:
        engine.everywhere(os._exit, 3)
    assert caught.value.code == "SNG585"


def test_workers_that_lack_a_package_or_have_another_version_are_named():
    with pytest.raises(InputError, match="not installed on tcp://b") as caught:
        fitness._require("snugly", "1.0", {"tcp://a": "1.0", "tcp://b": None}, "pip install it")
    assert (caught.value.code, caught.value.hint) == ("SNG582", "pip install it")
    with pytest.raises(InputError, match=r"is 1\.0 here, but 0\.9 on tcp://b"):
        fitness._require("snugly", "1.0", {"tcp://a": "1.0", "tcp://b": "0.9"}, "…")
    many = {f"tcp://{number}": None for number in range(9)}
    with pytest.raises(InputError, match="and 5 more"):
        fitness._require("snugly", "1.0", many, "…")
    fitness._require("snugly", "1.0", {"tcp://a": "1.0"}, "…")


def test_the_limit_that_is_named_gives_the_room_that_is_needed():
    limit = limit_for(100 << 20, resident=200 << 20)
    worker = Worker("w", "h", 1, limit)
    assert 100 << 20 <= room_of(worker, 200 << 20, 0, 1) < 103 << 20


def test_a_worker_that_went_while_it_was_counted_is_left_out():
    limits = {"a": Size("1GiB"), "b": Size("2GiB")}
    workers = [Worker(name, "h", 1, limit) for name, limit in limits.items()]
    room, resident, smallest = smallest_room(workers, {"b": (7 << 20, 0), "c": (0, 0)})
    assert (smallest.name, resident) == ("b", 7 << 20)
    assert room == room_of(workers[1], 7 << 20, 0, 2)
    with pytest.raises(InputError) as caught:
        smallest_room(workers, {})
    assert caught.value.code == "SNG581"


def test_a_worker_without_a_limit_has_its_share_of_the_machine():
    worker = Worker("w", "h", 1, None)
    assert room_of(worker, 0, 10 << 30, 2) < 5 << 30


def test_what_is_no_engine_is_refused():
    with pytest.raises(InputError) as caught:
        checked("tcp://127.0.0.1:8786")
    assert caught.value.code == "SNG587"
    assert "snugly.engines.dask('tcp://127.0.0.1:8786')" in caught.value.hint
