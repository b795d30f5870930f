"""The report of a prediction: the contract's keys, the verdict, what a reader must find."""

import json
from types import SimpleNamespace

import pytest

from snugly.devices import Budget
from snugly.reporting.json import to_json
from snugly.reporting.prediction import (
    draw_prediction,
    parts_sentence,
    prediction_data,
    verdict_sentence,
)
from snugly.reporting.terminal import make_console
from snugly.units import Size


def make_tensor(size, **fields):
    known = {"kind": "activation", "op": "Relu", "layer": "conv1", "line": "train.py:48"}
    return SimpleNamespace(bytes=size, **(known | fields))


def make_prediction(**fields):
    known = {
        "program": "train.py:model",
        "training": True,
        "peak": Size("18.3 GiB"),
        "low": Size("17.6 GiB"),
        "high": Size("19.1 GiB"),
        "requested": Size("18 GiB"),
        "resident": Size("4.7 GiB"),
        "parts": {"weight": Size("1.6 GiB"), "activation": Size("11.2 GiB")},
        "tensors": [make_tensor(3 * 1024**3), make_tensor(1024**2, layer=None, line=None)],
        "verdict": "does-not-fit",
        "budget": Budget(Size("14.7 GiB"), "measured", "GPU:0", "gpu:0"),
        "peak_where": "backward pass of block5_conv2 (train.py:48)",
        "suggestions": ["batch_size=21 fits with nothing else changed"],
        "notes": ["2 ops were assumed"],
        "tensorflow": "2.21.0",
        "elapsed": 1.2345,
    }
    return SimpleNamespace(**(known | fields))


def drawn(prediction):
    console = make_console()
    with console.capture() as capture:
        console.print(draw_prediction(prediction))
    return capture.get()


def test_data_has_the_keys_of_the_contract_in_plain_bytes():
    data = json.loads(to_json(prediction_data(make_prediction())))
    assert data["schema_version"] == 1
    contract = {"peak", "low", "high", "requested", "resident", "parts", "tensors", "verdict"}
    assert contract <= data.keys()
    assert data["peak"] == int(Size("18.3 GiB"))
    assert data["parts"] == {"weight": int(Size("1.6 GiB")), "activation": int(Size("11.2 GiB"))}
    assert data["tensors"][0] == {
        "bytes": 3 * 1024**3,
        "kind": "activation",
        "op": "Relu",
        "layer": "conv1",
        "line": "train.py:48",
    }
    assert data["headroom"] == data["budget"]["bytes"] - data["peak"]


def test_data_without_a_budget_says_null():
    data = prediction_data(make_prediction(budget=None, verdict=None))
    assert (data["budget"], data["headroom"], data["verdict"]) == (None, None, None)


def test_the_verdict_is_one_sentence_with_marked_numbers():
    assert verdict_sentence(make_prediction()) == (
        "one training step needs 18.3 GiB (17.6–19.1 GiB predicted);"
        " GPU:0 offers 14.7 GiB (measured)"
    )
    assert verdict_sentence(make_prediction(budget=None, training=False)) == (
        "one inference step needs 18.3 GiB (17.6–19.1 GiB predicted)"
    )


def test_parts_share_a_unit_largest_first():
    parts = {
        "weight": Size("1.6 GiB"),
        "activation": Size("11.2 GiB"),
        "workspace": Size("2.4 GiB"),
        "output": Size(4),
    }
    assert parts_sentence(parts) == "activations 11.2 · workspace 2.4 · weights 1.6 GiB"
    assert parts_sentence({}) == "nothing"


@pytest.mark.parametrize(
    ("verdict", "label"),
    [
        ("does-not-fit", "error[SNG101]: one training step"),
        ("uncertain", "warning[SNG102]: one training step"),
        ("fits", "fits: one training step"),
        (None, "predicted: one training step"),
    ],
)
def test_the_drawing_begins_with_the_verdict(verdict, label):
    assert drawn(make_prediction(verdict=verdict)).startswith(label)


def test_the_drawing_tells_where_the_peak_is_and_what_would_fit():
    text = drawn(make_prediction())
    assert "in the backward pass of block5_conv2 (train.py:48)" in text
    assert "activations 11.2 · weights 1.6 GiB" in text
    assert "hint: batch_size=21 fits with nothing else changed" in text
    assert "note: 2 ops were assumed" in text
    assert "-3.6 GiB" in text  # headroom


def test_only_the_largest_tensors_are_drawn_and_the_rest_is_summed():
    tensors = [make_tensor(1024**2, layer=f"layer{index}") for index in range(12)]
    text = drawn(make_prediction(tensors=tensors))
    assert "layer7" in text
    assert "layer8" not in text
    assert "4 MiB" in text
    assert "4 more" in text


def test_a_bare_prediction_can_be_drawn():
    bare = make_prediction(
        tensors=[], notes=[], suggestions=[], budget=None, verdict=None, peak_where=None
    )
    text = drawn(bare)
    assert "hint:" not in text
    assert "headroom" not in text


def test_names_inside_models_are_printed_as_they_are():
    # GIVEN a layer whose name looks like markup
    text = drawn(make_prediction(tensors=[make_tensor(1024, layer="[red]conv[/red]")]))
    # THEN it is not obeyed
    assert "[red]conv[/red]" in text
