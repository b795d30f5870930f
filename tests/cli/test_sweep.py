"""`snugly sweep`: models, batch sizes and devices in, a table and an exit code out."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from tests.lite.conftest import build, dense

from snugly.cli import main

SCRIPT = """\
import keras

def model():
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256), keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    return model

def slow():
    import time
    print("building", flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def files():
    return {"small.tflite": build(dense()), "large.tflite": build(dense(600, 1000))}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, files):
    """A folder with models in it, and no settings."""
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sweep(words):
    return main(["sweep", *words.split(" ")])


def test_a_table_is_printed_and_the_worst_row_is_the_exit_code(capsys):
    assert sweep("small.tflite --device esp32-s3 rp2040") == 0
    assert capsys.readouterr().out.startswith("2 cells: 2 fit\n")
    assert sweep("small.tflite large.tflite --device esp32-s3 nrf52840") == 1
    said = capsys.readouterr().out
    assert said.startswith("4 cells: 3 fit, 1 do not fit\n")
    assert "note: large.tflite on nrf52840: the file takes" in said
    assert sweep("small.tflite nowhere.tflite --device esp32-s3") == 2
    said = capsys.readouterr()
    assert said.out.startswith("2 cells: 1 fit, 1 could not be predicted\n")
    assert "error[SNG104]: there is no file 'nowhere.tflite'\nhint: " in said.out
    assert said.err == ""


def test_without_a_budget_nothing_is_judged(capsys):
    assert sweep("small.tflite large.tflite") == 0
    assert capsys.readouterr().out.startswith("2 cells: 2 predicted\n")


def test_json_carries_the_rows(capsys):
    assert sweep("small.tflite --device esp32-s3 --output-format json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema_version"] == 1
    (row,) = data["rows"]
    assert (row["model"], row["device"], row["verdict"]) == ("small.tflite", "esp32-s3", "fits")
    assert row["peak"] <= row["arena"] <= row["budget"]["bytes"]


def test_the_table_is_written_for_spreadsheets(folder, capsys):
    assert sweep("small.tflite --device esp32-s3 rp2040 -o table.csv") == 0
    assert capsys.readouterr().err == "written: table.csv\n"
    rows = list(csv.DictReader((folder / "table.csv").read_text().splitlines()))
    assert [row["device"] for row in rows] == ["esp32-s3", "rp2040"]
    assert all(int(row["peak"]) < int(row["budget"]) for row in rows)


def test_the_project_can_set_the_device(folder, capsys):
    (folder / "pyproject.toml").write_text('[tool.snugly]\ndevice = "nrf52840"\n')
    assert sweep("large.tflite") == 1
    assert "nrf52840" in capsys.readouterr().out
    assert sweep("large.tflite --memory 1GiB 2GiB") == 0
    assert capsys.readouterr().out.startswith("2 cells: 2 fit\n")


@pytest.mark.tensorflow
def test_training_steps_and_their_largest_batches(capsys):
    # GIVEN one budget that holds the weights and their optimizer, and one that does not
    words = "train.py:model --train --batch-size 8 --memory 64KiB 1MiB --largest"
    assert sweep(f"{words} --output-format json") == 1
    data = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in data["rows"]] == ["does-not-fit", "fits"]
    assert data["largest"][0]["error"]["code"] == "SNG539"
    assert data["largest"][1]["batch_size"] > 8
    assert data["training"] is True


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("small.tflite --device esp32-s4", "SNG201", "did you mean esp32-s3"),
        ("small.tflite --device t4 --memory 1GiB", "SNG002", "not allowed with"),
        ("small.tflite --memory 4Q", "SNG004", "4Q"),
        ("--device t4", "SNG002", "MODEL"),
        ("small.tflite --batch-size 0", "SNG002", "--batch-size must be at least 1, not 0"),
        ("--batch-size 8 small.tflite", "SNG002", "name the models first"),
        ("small.tflite --training", "SNG002", "did you mean --train"),
        ("small.tflite --largest", "SNG549", "--device, --memory"),
        ("small.tflite --dimension sequence=0", "SNG002", "--dimension sequence=512"),
        ("small.tflite -o nowhere/table.csv", "SNG002", "-o table.csv"),
        ("small.tflite --cluster carrier-pigeon://nest", "SNG580", "carrier-pigeon"),
    ],
)
def test_bad_input_is_refused_with_a_hint(capsys, words, code, says):
    assert sweep(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error[{code}]: ")
    assert says in said.err
    assert "\nhint: " in said.err


def test_an_address_where_nothing_listens_is_refused(capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert sweep(f"small.tflite --cluster tcp://127.0.0.1:{port}") == 2
    assert capsys.readouterr().err.startswith("error[SNG580]: no Dask scheduler answers")


def test_a_cluster_predicts_as_this_process_does(capsys):
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        words = "small.tflite large.tflite --device esp32-s3 --output-format json"
        assert sweep(f"{words} --cluster {cluster.scheduler_address}") == 0
        away = json.loads(capsys.readouterr().out)
    assert sweep(words) == 0
    here = json.loads(capsys.readouterr().out)
    assert away["rows"] == here["rows"]
    assert cluster.scheduler_address in away["engine"]


@pytest.mark.tensorflow
def test_an_interrupt_ends_it_without_a_traceback(folder):
    # GIVEN a sweep whose model takes a minute to build
    process = subprocess.Popen(
        [sys.executable, "-m", "snugly", "sweep", "train.py:slow", "--batch-size", "1"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout.readline() == "building\n"
        # WHEN somebody presses Ctrl-C
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=50)
    finally:
        process.kill()
        process.wait()
    # THEN it says so, and nothing else
    assert process.returncode == 130
    assert said.endswith("interrupted\n")
    assert "Traceback" not in said
