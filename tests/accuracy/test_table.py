"""The arithmetic of the accuracy table."""

from __future__ import annotations

from typing import Any

import pytest
from tests.accuracy.table import markdown, row, summarise, verdict


def record(peak: int, protocol: str = "on_batch", **more: Any) -> dict[str, Any]:
    about = {"program": "mlp", "batch": 32, "mode": "train", "optimizer": "adam", "onednn": True}
    return about | {"protocol": protocol, "peak": peak, "requested": 900} | more


def test_the_truth_is_the_median_of_the_step_protocol() -> None:
    # GIVEN three repeats of single steps, and a fit whose input pipeline holds more
    records = [record(1000), record(1010), record(1100), record(1500, "fit")]

    # WHEN they are joined
    joined = row(records, None, None)

    # THEN fit widens the spread and leaves the median alone
    assert joined.measured == 1010
    assert (joined.lowest, joined.highest) == (1000, 1500)
    assert joined.peak is None


@pytest.mark.parametrize(
    ("low", "high", "budget", "expected"),
    [
        (90, 100, 100, "fits"),
        (90, 110, 100, "uncertain"),
        (100, 110, 100, "uncertain"),
        (101, 110, 100, "does-not-fit"),
    ],
)
def test_a_range_gives_a_verdict(low: int, high: int, budget: float, expected: str) -> None:
    assert verdict(low, high, budget) == expected


def test_a_range_that_lies_too_low_is_counted_as_wrong_fits() -> None:
    # GIVEN a true peak of 1000 and a range that ends at 950
    prediction = {"peak": 940, "low": 930, "high": 950, "requested": 900}

    # WHEN budgets are drawn at 900, 920, … 1100
    summary = summarise([row([record(1000)], prediction, None)])

    # THEN 960 and 980 are wrong "fits", 940 is uncertain, and the rest is right
    assert summary.wrong_fits == 2
    assert summary.uncertain == pytest.approx(1 / 11)
    assert summary.right == pytest.approx(8 / 11)
    assert summary.inside == 0
    assert summary.mean_error == pytest.approx(0.06)


def test_peers_that_failed_are_left_out_of_their_mean() -> None:
    # GIVEN one case where Grappler answered and one where it did not
    answered = row([record(1000)], None, {"grappler": 250, "keras": 500, "forum": 3000})
    failed = row(
        [record(1000)], None, {"grappler": "InvalidArgumentError: no shapes", "keras": 700}
    )

    # WHEN both are summarised
    summary = summarise([answered, failed])

    # THEN each peer is judged on the cases it answered
    assert summary.peers == {"grappler": 0.75, "keras": pytest.approx(0.4), "forum": 2.0}


def test_the_page_says_where_it_was_measured_and_what_was_not_predicted() -> None:
    # GIVEN a case without a prediction
    rows = [row([record(1 << 20)], {"error": "no predictor: No module named 'snugly'"}, None)]
    about = {
        "date": "2026-01-01",
        "tensorflow": "2.21.0",
        "keras": "3.15.1",
        "cores": 2,
        "cpu": "X",
        "repeats": 1,
    }

    # WHEN the page is written
    page = markdown(rows, about)

    # THEN it carries the versions, the measured size, and the reason in the place of the number
    assert "TensorFlow 2.21.0" in page
    assert "| mlp | 32 | train | adam | on | 1.00 | 1.00–1.00 | no predictor |" in page
    assert "0 of 1" in page
