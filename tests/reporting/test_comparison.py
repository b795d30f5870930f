"""The report of a comparison: what grew, from where to where, and what is measured."""

import json

import pytest

from snugly.recording.comparison import Side, compare
from snugly.reporting.comparison import (
    comparison_data,
    draw_comparison,
    is_exceeded,
    peak_sentence,
)
from snugly.reporting.json import to_json
from snugly.reporting.terminal import make_console
from snugly.timeline import LiveTensor
from snugly.units import Size

MIB = 1024**2


def make_side(*layers, provenance="measured", peak=None, kind="activation"):
    """A side with tensors of (layer, mebibytes)."""
    tensors = [LiveTensor(Size(int(size * MIB)), kind, "MatMul", name) for name, size in layers]
    whole = Size(sum(tensor.bytes for tensor in tensors))
    return Side(
        program="train.py",
        provenance=provenance,
        peak=Size(peak * MIB) if peak is not None else whole,
        requested=whole,
        resident=Size(0),
        parts={kind: whole},
        tensors=tensors,
        device="CPU:0",
        tensorflow="2.21.0",
    )


def drawn(comparison, limit=None):
    console = make_console()
    with console.capture() as capture:
        console.print(draw_comparison(comparison, limit))
    return capture.get()


def test_growth_is_one_sentence_with_both_peaks_marked():
    comparison = compare(make_side(("a", 600), provenance="predicted"), make_side(("a", 650)))
    assert peak_sentence(comparison) == (
        "the peak went from 600 MiB (predicted) to 650 MiB (measured): 50 MiB more, +8.3 %"
    )
    assert drawn(comparison).startswith("grew: the peak went from")


def test_shrinking_and_staying_are_told_apart():
    small, large = make_side(("a", 1)), make_side(("a", 4))
    assert "3 MiB less, -75.0 %" in peak_sentence(compare(large, small))
    assert drawn(compare(large, small)).startswith("shrank:")
    assert drawn(compare(small, small)).startswith("same: the peak stayed at 1 MiB (measured)")
    predicted = make_side(("a", 1), provenance="predicted")
    assert peak_sentence(compare(predicted, small)).endswith("no difference")
    assert "%" not in peak_sentence(compare(make_side(), small))


def test_what_did_not_change_is_not_listed():
    text = drawn(compare(make_side(("a", 1), ("b", 2)), make_side(("a", 1), ("b", 3))))
    assert "growth" in text
    assert [line.split()[-1] for line in text.splitlines() if "+1 MiB" in line][-1] == "b"
    assert not any(line.split()[-1:] == ["a"] for line in text.splitlines())
    assert "growth" not in drawn(compare(make_side(("a", 1)), make_side(("a", 1))))


def test_new_gone_and_renumbered_layers_say_so():
    before = make_side(("dense", 4), ("old", 2), (None, 1))
    after = make_side(("dense_3", 8), ("new", 3))
    text = drawn(compare(before, after))
    assert "dense → dense_3" in text
    assert "new (new)" in text
    assert "old (gone)" in text
    assert "(no layer)" in text


def test_both_directions_are_shown_and_the_rest_is_counted():
    before = make_side(*((f"up{chr(97 + n)}", 1) for n in range(15)), ("down", 9))
    after = make_side(*((f"up{chr(97 + n)}", 2 + n) for n in range(15)), ("down", 1))
    text = drawn(compare(before, after))
    assert "+15 MiB" in text
    assert "-8 MiB" in text
    assert "5 smaller changes" in text


def test_without_layers_lines_are_listed():
    tensors = [LiveTensor(Size(MIB), "weight", "w", None, "train.py:7")]
    before, after = make_side(), make_side((None, 1))
    object.__setattr__(after, "tensors", tensors)
    text = drawn(compare(before, after))
    assert "train.py:7 (new)" in text
    assert "layer" not in text


@pytest.mark.parametrize(("limit", "over"), [(None, False), (49, True), (50, False), (51, False)])
def test_the_limit_is_on_the_growth_of_the_peak(limit, over):
    comparison = compare(make_side(("a", 600)), make_side(("a", 650)))
    allowed = None if limit is None else limit * MIB
    assert is_exceeded(comparison, allowed) is over
    text = drawn(comparison, allowed)
    assert ("over the limit" in text) is over
    assert ("within the limit" in text) is (limit is not None and not over)
    assert comparison_data(comparison, allowed)["exceeded"] is over


def test_data_is_complete_and_in_plain_bytes():
    comparison = compare(make_side(("dense", 1)), make_side(("dense_1", 2), provenance="predicted"))
    data = json.loads(to_json(comparison_data(comparison, 7)))
    assert data["schema_version"] == 1
    assert data["peak"] == {"before": MIB, "after": 2 * MIB, "growth": MIB}
    assert data["layers"] == [
        {"name": "dense_1", "was": "dense", "before": MIB, "after": 2 * MIB, "growth": MIB}
    ]
    assert data["before"]["provenance"] == "measured"
    assert data["after"]["provenance"] == "predicted"
    assert {"requested", "resident", "transient", "kinds", "lines", "notes"} <= data.keys()
    assert data["max_growth"] == 7


def test_names_cannot_steer_the_terminal():
    text = drawn(compare(make_side(("\x1b[2Ja", 1)), make_side(("\x1b[2Ja", 2))))
    assert "\x1b" not in text
