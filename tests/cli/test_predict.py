"""`snugly predict` around the prediction itself: arguments in, report and exit code out.

The prediction is a stand-in here; predicting has tests of its own.
"""

import json
from types import SimpleNamespace

import pytest

import snugly
from snugly.cli import main
from snugly.devices import budget_for
from snugly.units import Size


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """Replace `snugly.predict` and keep what it was called with; leave no settings in reach."""
    seen = []

    def predict(program, **arguments):
        seen.append({"program": program} | arguments)
        return SimpleNamespace(
            program=program,
            training=arguments["training"],
            peak=Size("2 GiB"),
            low=Size("1.9 GiB"),
            high=Size("2.1 GiB"),
            requested=Size("2 GiB"),
            resident=Size("1 GiB"),
            parts={"weight": Size("2 GiB")},
            tensors=[],
            verdict=verdict[0],
            budget=budget_for(arguments["memory"], arguments["device"]),
            peak_where=None,
            suggestions=[],
            notes=[],
            tensorflow="2.21.0",
            elapsed=0.5,
        )

    verdict = ["fits"]
    monkeypatch.setattr(snugly, "predict", predict, raising=False)
    monkeypatch.chdir(tmp_path)
    return SimpleNamespace(seen=seen, verdict=verdict, folder=tmp_path)


def test_arguments_reach_the_prediction(calls):
    words = "m.keras --train --batch-size 4 --memory 4GiB --runtime xla --allow-code"
    words += " --strategy mirrored:2"
    assert main(["predict", *words.split(), "--dimension", "a=3", "--dimension", "b=5"]) == 0
    assert calls.seen == [
        {
            "program": "m.keras",
            "training": True,
            "batch_size": 4,
            "memory": "4GiB",
            "device": None,
            "runtime": "xla",
            "allow_code": True,
            "dimensions": {"a": 3, "b": 5},
            "strategy": "mirrored:2",
        }
    ]


@pytest.mark.parametrize(
    ("verdict", "code"), [("fits", 0), (None, 0), ("does-not-fit", 1), ("uncertain", 1)]
)
def test_the_exit_code_is_the_verdict(calls, verdict, code):
    calls.verdict[0] = verdict
    assert main(["predict", "m.keras"]) == code


def test_json_carries_the_contract(calls, capsys):
    calls.verdict[0] = "does-not-fit"
    assert main(["predict", "m.keras", "--memory", "1GiB", "--output-format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["schema_version"] == 1
    assert data["headroom"] == -(1024**3)


def test_the_project_can_set_the_device(calls):
    text = '[tool.snugly]\ndevice = "t4"\n'
    (calls.folder / "pyproject.toml").write_text(text, encoding="utf-8")
    main(["predict", "m.keras"])
    main(["predict", "m.keras", "--memory", "1GiB"])
    assert [(call["memory"], call["device"]) for call in calls.seen] == [
        (None, "t4"),
        ("1GiB", None),
    ]


def test_a_bad_budget_is_refused_before_anything_is_loaded(calls):
    assert main(["predict", "m.keras", "--device", "jetson-nono"]) == 2
    assert calls.seen == []


def test_a_strategy_that_cannot_be_read_is_refused_at_once(calls, capsys):
    assert main(["predict", "m.keras", "--train", "--strategy", "miror:4"]) == 2
    said = capsys.readouterr().err
    assert "error[SNG109]" in said
    assert "did you mean mirrored?" in said
    assert not calls.seen
