"""The report of training that is spread: an added key, a line for each kind of process."""

from types import SimpleNamespace

from snugly.predicting.distribution import Distribution, Share
from snugly.predicting.strategies import strategy_from
from snugly.reporting.distribution import draw_distribution
from snugly.reporting.prediction import draw_prediction, prediction_data
from snugly.reporting.terminal import make_console
from snugly.units import Size


def share(low, peak, high):
    return Share(Size(f"{peak}GiB"), Size(f"{low}GiB"), Size(f"{high}GiB"))


def make_distribution(strategy="multiworker:2x4", batch_size=64, **fields):
    chosen = strategy_from(strategy)
    known = {
        "strategy": chosen,
        "batch_size": batch_size,
        "batch_size_per_replica": chosen.largest_share(batch_size),
        "replica": share(3, 4, 5),
        "worker": share(9, 16, 20),
        "exchange": {
            "packed": Size("1 GiB"),
            "received": Size("0.5 GiB"),
            "unpacked": Size(0),
        },
    }
    return Distribution(**(known | fields))


def make_prediction(distribution):
    return SimpleNamespace(
        program="train.py:model",
        training=True,
        peak=Size("4 GiB"),
        low=Size("3 GiB"),
        high=Size("5 GiB"),
        requested=Size("4 GiB"),
        resident=Size("2 GiB"),
        parts={},
        tensors=[],
        verdict=None,
        budget=None,
        peak_where=None,
        suggestions=[],
        notes=[],
        tensorflow="2.21.0",
        elapsed=1.0,
        distribution=distribution,
    )


def drawn(drawing):
    console = make_console()
    with console.capture() as capture:
        console.print(drawing)
    return [" ".join(line.split()) for line in capture.get().splitlines()]


def test_data_has_the_key_only_under_a_strategy():
    assert "distribution" not in prediction_data(make_prediction(None))
    data = prediction_data(make_prediction(make_distribution()))["distribution"]
    assert data["strategy"] == "multiworker:2x4"
    assert (data["replicas"], data["workers"]) == (8, 2)
    assert (data["batch_size"], data["batch_size_per_replica"]) == (64, 8)
    assert data["worker"] == {
        "peak": 16 * 1024**3,
        "low": 9 * 1024**3,
        "high": 20 * 1024**3,
        "provenance": "predicted",
    }
    assert data["exchange"]["packed"] == {"bytes": 1024**3, "provenance": "predicted"}
    assert data["parameter_servers"] == []


def test_the_drawing_has_a_line_for_each_kind_of_process():
    lines = drawn(draw_prediction(make_prediction(make_distribution())))
    assert "strategy multiworker:2x4" in lines
    assert "batch 64 in all, 8 on each replica" in lines
    assert "exchange packed 1 · received 0.5 GiB (predicted)" in lines
    assert "replica 8 devices 4 GiB 3–5 GiB" in lines
    assert "worker 2 processes 16 GiB 9–20 GiB" in lines


def test_a_batch_that_does_not_divide_is_said():
    lines = drawn(draw_distribution(make_distribution("mirrored:4", 30)))
    assert "batch 30 in all: 8 on some replicas, which is predicted, 7 on others" in lines
    assert "worker 1 process 16 GiB 9–20 GiB" in lines


def test_fewer_examples_than_replicas_leave_some_with_none():
    lines = drawn(draw_distribution(make_distribution("mirrored:4", 3)))
    assert "batch 3 in all: 1 on some replicas, which is predicted, 0 on others" in lines


def test_every_parameter_server_has_its_line_and_nothing_is_exchanged():
    distribution = make_distribution(
        "parameter-server:2x2",
        8,
        exchange=dict.fromkeys(("packed", "received", "unpacked"), Size(0)),
        parameter_servers=(share(1, 2, 3), share(2, 3, 4)),
    )
    lines = drawn(draw_distribution(distribution))
    assert "batch 8 in each step of a worker" in lines
    assert "parameter server 0 1 process 2 GiB 1–3 GiB" in lines
    assert "parameter server 1 1 process 3 GiB 2–4 GiB" in lines
    assert not any(line.startswith("exchange") for line in lines)
    assert len(distribution.to_data()["parameter_servers"]) == 2
