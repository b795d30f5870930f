"""The detection example: what it draws, what it prints, and that it leaves nothing behind."""

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

pytestmark = pytest.mark.tensorflow

EXAMPLE = Path(__file__).parents[2] / "examples/detection"
FEW = ["--epochs", "2"]


@pytest.fixture
def example(monkeypatch):
    """The example's modules, as `python train.py` finds them: beside one another."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    names = ["comparing", "detector", "shapes", "train"]
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name)


def start(*arguments, **options):
    command = [sys.executable, str(EXAMPLE / "train.py"), *arguments]
    return subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


def test_fit_dies_the_shrunk_detector_trains_and_the_losses_agree(tmp_path):
    # WHEN the example is run as a stranger runs it, for one epoch less
    ended = start(*FEW, cwd=tmp_path)
    said, words = ended.communicate()
    # THEN it says that all went as it should
    assert ended.returncode == 0, said + words
    limited, free, shrunk = said.split("\n\n")[1].split("…")[1:]
    assert "died: OOM when allocating tensor" in limited or "died of SIG" in limited
    assert "trained; the peak was" in free
    assert "recomputation: saves" in shrunk
    assert "trained; the peak was" in shrunk
    assert said.endswith("the losses agree, and fall.\n")
    # AND nothing is left where it was run
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_all_runs_and_removes_their_folder(tmp_path):
    # GIVEN the example in the midst of its runs
    ended = start(*FEW, env={**os.environ, "TMPDIR": str(tmp_path)})
    deadline = time.monotonic() + 60
    running = []
    while len(running) < 3 and time.monotonic() < deadline:
        running = psutil.Process(ended.pid).children()
        time.sleep(0.05)
    assert len(running) == 3
    # WHEN it alone is interrupted THEN it says so, and neither processes nor folder remain
    ended.send_signal(signal.SIGINT)
    _, words = ended.communicate(timeout=60)
    assert ended.returncode == 130
    assert words == "\nstopped; nothing is left behind\n"
    assert not any(process.is_running() for process in running)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "1"], "at least 2"),
        (["--side", "100"], "a multiple of 8"),
        (["--batch-size", "0"], "at least 1"),
        (["--memory", "lots"], "cannot read 'lots' as a size"),
        (["--plain", "--shrunk"], "not allowed with"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_line(example, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        example["train"].main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_losses_that_differ_or_do_not_fall_are_a_failure(example, capsys):
    table = example["comparing"].table
    falling = {"loss": [2.0, 1.0]}
    assert table(falling, {"loss": [2.0, 1.00005]}, died=True) == 0
    assert "the losses agree, and fall." in capsys.readouterr().out
    assert table(falling, {"loss": [2.0, 1.001]}, died=True) == 1
    assert "DIFFER" in capsys.readouterr().out
    assert table({"loss": [1.0, 2.0]}, {"loss": [1.0, 2.0]}, died=True) == 1
    assert "DO NOT FALL" in capsys.readouterr().out
    assert table(falling, falling, died=False) == 1
    assert "did NOT die" in capsys.readouterr().out


def test_boxes_are_around_what_is_drawn(example):
    draw = example["shapes"].draw
    for number in range(20):
        image, boxes, kinds = (each.numpy() for each in draw([0, number], 96))
        assert 1 <= len(boxes) == len(kinds) <= 3
        assert set(kinds) <= {1, 2, 3}
        # Background is noise around zero, shapes are of 0.3 · 255 and more in every colour.
        y, x, height, width = boxes[-1]  # drawn last, so that nothing covers it
        inside = np.zeros((96, 96), bool)
        for cy, cx, h, w in boxes:
            rows = slice(max(0, round(cy - h / 2)), round(cy + h / 2) + 1)
            inside[rows, max(0, round(cx - w / 2)) : round(cx + w / 2) + 1] = True
        assert image.min(-1)[round(y - 0.5), round(x - 0.5)] >= 76
        assert (image[~inside] < 0.6 * 255).all()
        assert height == width


def test_every_shape_is_held_by_an_anchor_that_finds_it_again(example):
    detector, shapes = example["detector"], example["shapes"]
    places = detector.anchors(96)
    _, boxes, kinds = shapes.draw([0, 3], 96)
    wanted = {name: value.numpy() for name, value in shapes.targets(boxes, kinds, 96).items()}
    assert wanted["classes"].shape == (len(places),)
    held = wanted["boxes"][:, 4] == 1
    assert set(wanted["classes"][held]) <= set(kinds.numpy().astype(float))
    # What the targets say of an anchor leads back to the box that it holds.
    centre = places[held, :2] + wanted["boxes"][held, :2] * 0.1 * places[held, 2:]
    size = places[held, 2:] * np.exp(wanted["boxes"][held, 2:4] * 0.2)
    found = {tuple(row) for row in np.round(np.concatenate([centre, size], 1), 1)}
    assert found == {tuple(row) for row in np.round(boxes.numpy(), 1)}
