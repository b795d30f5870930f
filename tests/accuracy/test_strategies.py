"""Real distributed training on this machine, against what is predicted for each process.

`python -m tests.accuracy.strategies` does the same with more programs.
"""

from __future__ import annotations

import pytest
from tests.accuracy import strategies

pytest.importorskip("tensorflow", reason="needs TensorFlow")

BATCH = 32


def check(rows: list[strategies.Row]) -> None:
    for row in rows:
        assert row.inside, str(row)
        # a range that holds everything would prove nothing; a server's goes from one worker to two
        widest = 2.5 if row.process in {"worker", "in fit"} else 4.0
        assert row.predicted.high < widest * row.predicted.low, str(row)
        assert all(peak > 0 for peak in row.measured)
    assert rows


@pytest.mark.parametrize("program", ["mlp-wide", "cnn"])
def test_two_workers_on_loopback_stay_inside_what_was_predicted(program: str) -> None:
    # GIVEN two processes that exchange gradients over gRPC, WHEN they train
    rows = strategies.multiworker(program, BATCH)
    # THEN the allocator of each saw a peak inside the range
    assert len(rows[0].measured) == 2
    check(rows)


def test_two_replicas_in_one_process_stay_inside_what_was_predicted() -> None:
    # GIVEN two logical CPUs, which share an allocator, WHEN they train by themselves and in fit
    rows = strategies.mirrored("cnn", BATCH)
    # THEN both peaks are inside the range of the worker
    check(rows)


def test_workers_and_their_parameter_server_stay_inside_what_was_predicted() -> None:
    # GIVEN a coordinator, two workers and a server, WHEN they train
    worker, server = strategies.parameter_server("mlp-wide", BATCH)
    # THEN each is inside its range
    check([worker, server])
    # AND the weights were on the server: a worker had less than the server keeps
    assert max(worker.measured) < min(server.measured)


def test_a_process_that_dies_is_reported_and_leaves_nobody_behind() -> None:
    # GIVEN a worker that is asked for a program that does not exist
    roles = (["trainer", "mirrored", 2], None)
    with (
        pytest.raises(strategies.MeasuringError, match="no program is called"),
        strategies.started(roles) as children,
    ):
        # WHEN it ends
        strategies.ask(children, "build", "no-such-program", BATCH)
    # THEN that is said with its last words, and its process is gone
    assert children[0].process.poll() is not None
