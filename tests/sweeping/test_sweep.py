"""sweep in this process: what predict says, cell by cell, each step predicted once."""

import json
import subprocess
import sys

import pytest
from tests.lite.conftest import build, dense

import snugly
from snugly.sweeping import cells
from snugly.units import Size

DEVICES = ["t4", "jetson-nano", "raspberry-pi-4-4gb"]
SMALL, LARGE = "models_of_sweeps.py:small", "models_of_sweeps.py:large"


@pytest.fixture
def readings(monkeypatch):
    """What is read, with which batch and for which machine; it is really read."""
    seen = []
    read = cells.read_program

    def noting(program, **asked):
        machine = asked["machine"]
        seen.append((program, asked["dimensions"].batch_size, machine and machine.device))
        return read(program, **asked)

    monkeypatch.setattr(cells, "read_program", noting)
    return seen


@pytest.mark.tensorflow
@pytest.mark.usefixtures("folder")
def test_every_cell_is_what_predict_says_and_every_step_is_predicted_once(readings):
    # WHEN two models, two batch sizes and three devices of two kinds are swept
    table = snugly.sweep([SMALL, LARGE], batch_sizes=[2, 8], devices=DEVICES, training=True)
    # THEN each step was read once for each kind
    steps = [(m, b, k) for m in (SMALL, LARGE) for k in ("gpu", "cpu") for b in (2, 8)]
    assert sorted(readings) == sorted(steps)
    assert table.predictions == len(steps)
    # AND the rows come in the order that was given
    places = [(row.model, row.batch_size, row.device) for row in table.rows]
    assert places == [(m, b, d) for m in (SMALL, LARGE) for b in (2, 8) for d in DEVICES]
    # AND each says what predict says
    assert (table.training, table.engine, table.errors) == (True, "this process", [])
    for row in table.rows[1::5]:
        alone = snugly.predict(
            row.model, batch_size=row.batch_size, training=True, device=row.device
        )
        assert (row.peak, row.low, row.high) == (alone.peak, alone.low, alone.high)
        assert row.found.requested == alone.requested
        assert (row.verdict, row.budget) == (alone.verdict, alone.budget)


@pytest.mark.tensorflow
@pytest.mark.usefixtures("folder")
def test_a_bad_cell_is_a_row_and_not_the_end():
    # GIVEN a missing file, a builder that fails, a number, and a model without a batch size
    models = ["nowhere.keras", "models_of_sweeps.py:failing", "models_of_sweeps.py:number", SMALL]
    shares = []
    table = snugly.sweep(models, memory=["64KiB", "1GiB"], progress=shares.append)
    codes = [row.error.code for row in table.rows]
    assert codes == ["SNG104"] * 2 + ["SNG108"] * 2 + ["SNG002"] * 2 + ["SNG103"] * 2
    assert "no such data" in table.rows[2].error.message
    assert all(row.verdict is None and row.peak is None for row in table.rows)
    assert len(table.errors) == 4
    assert table.predictions == 0
    assert shares == sorted(shares)
    assert shares[-1] == 1
    # AND the same models with a batch size are predicted where they can be
    table = snugly.sweep(models, batch_sizes=4, memory=["64KiB", "1GiB"])
    assert [row.verdict for row in table.rows[-2:]] == ["does-not-fit", "fits"]
    assert all(row.error is not None for row in table.rows[:-2])


@pytest.mark.tensorflow
@pytest.mark.usefixtures("folder")
def test_an_unexpected_failure_is_told_as_a_defect(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(cells, "predict_reading", broken)
    (row,) = snugly.sweep(SMALL, batch_sizes=2).rows
    assert row.error.code == "SNG001"
    assert "ZeroDivisionError: oops" in row.error.message


@pytest.mark.tensorflow
@pytest.mark.usefixtures("folder")
def test_the_largest_batch_surely_fits_and_little_more_would(readings):
    # WHEN the largest batches are asked for beside a batch size
    table = snugly.sweep(SMALL, batch_sizes=[8], memory=["2MiB", "64MiB"], largest=True)
    assert len(readings) == len(set(readings)) == table.predictions
    # THEN each one fits by prediction, and 5 % more examples do not surely fit
    for each in table.largest:
        fitting = snugly.predict(SMALL, batch_size=each.batch_size, memory=each.budget.bytes)
        assert fitting.verdict == "fits"
        assert each.high == fitting.high
        more = each.batch_size + max(2, each.batch_size // 20)
        assert snugly.predict(SMALL, batch_size=more, memory=each.budget.bytes).verdict != "fits"
    # AND the function for one model, which takes fewer steps, finds no more
    alone = snugly.largest_batch_size(SMALL, memory="64MiB", training=False, probes=0)
    assert table.largest[1].batch_size * 1.02 >= alone  # it is within 2 % of the largest


@pytest.mark.tensorflow
@pytest.mark.usefixtures("folder")
def test_where_there_is_no_largest_batch_it_says_why():
    models = [SMALL, "models_of_sweeps.py:fixed", "models_of_sweeps.py:failing", "nowhere.tflite"]
    table = snugly.sweep(models, memory=["16KiB", "1GiB"], largest=True)
    assert table.rows == ()
    codes = [each.error and each.error.code for each in table.largest]
    assert codes == ["SNG539", None, "SNG539", "SNG002", "SNG108", "SNG108", "SNG565", "SNG565"]
    assert "the program fixes its shapes" in table.largest[3].error.message


@pytest.mark.tensorflow
def test_models_of_this_process_are_swept_and_left_as_they_were():
    import keras

    model = keras.Sequential([keras.Input((16,), name="x"), keras.layers.Dense(8)], name="mine")
    before = [weight.numpy() for weight in model.weights]
    table = snugly.sweep({"first": model}, batch_sizes=[2, 4])
    assert [(row.model, row.verdict) for row in table.rows] == [("first", None)] * 2
    assert [row.peak for row in table.rows] == [
        snugly.predict(model, batch_size=size).peak for size in (2, 4)
    ]
    after = [weight.numpy() for weight in model.weights]
    assert all((one == other).all() for one, other in zip(before, after, strict=True))


def test_tflite_files_are_judged_by_their_arena_on_every_microcontroller(tmp_path):
    # GIVEN a model that is too large for some flash
    path = tmp_path / "dense.tflite"
    path.write_bytes(build(dense(600, 1000)))
    devices = ["esp32-s3", "nrf52840", "rp2040", "raspberry-pi-4-4gb"]
    table = snugly.sweep(path, devices=devices)
    # THEN each row is what predict says of that device
    for row in table.rows:
        alone = snugly.predict(path, device=row.device)
        assert (row.peak, row.verdict) == (alone.peak, alone.verdict)
        is_micro = row.device != "raspberry-pi-4-4gb"
        assert row.found.arena == (alone.arena if is_micro else None)
    assert [row.verdict for row in table.rows] == ["fits", "does-not-fit", "does-not-fit", "fits"]
    assert "of flash" in table.rows[1].reason
    # AND a batch size that the file does not have is an error of its own
    (row,) = snugly.sweep(path, batch_sizes=8, devices="esp32-s3").rows
    assert row.error.code == "SNG565"


def test_an_operator_that_is_not_known_is_the_reason_for_doubt(tmp_path):
    from tests.lite.conftest import Op, T

    graph = dense()
    graph.tensors.append(T((1, 4)))
    graph.operators.append(Op("Mystery", (3,), (4,)))
    path = tmp_path / "mystery.tflite"
    path.write_bytes(build(graph))
    (row,) = snugly.sweep(path, devices="esp32-s3").rows
    assert row.verdict == "uncertain"
    assert "not known" in row.reason


def test_tflite_files_and_bad_input_load_no_tensorflow(tmp_path):
    path = tmp_path / "dense.tflite"
    path.write_bytes(build(dense()))
    code = (
        "import sys, snugly\n"
        f"table = snugly.sweep([{str(path)!r}, 'nowhere.keras'], devices=['esp32-s3', 't4'])\n"
        "assert [row.verdict for row in table.rows] == ['fits', 'fits', None, None]\n"
        "assert not {'tensorflow', 'keras', 'dask', 'rich'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.tensorflow
@pytest.mark.usefixtures("folder")
def test_a_runtime_is_for_the_models_that_it_runs(tmp_path):
    path = tmp_path / "dense.tflite"
    path.write_bytes(build(dense()))
    table = snugly.sweep([SMALL, path], batch_sizes=1, runtime="micro")
    assert [row.error and row.error.code for row in table.rows] == ["SNG564", None]
    table = snugly.sweep([SMALL, path], batch_sizes=1, runtime="xla")
    assert [row.error and row.error.code for row in table.rows] == [None, "SNG564"]
    assert table.rows[0].peak == snugly.predict(SMALL, batch_size=1, runtime="xla").peak


def test_the_data_is_plain_and_has_the_keys_of_predictions(tmp_path):
    path = tmp_path / "dense.tflite"
    path.write_bytes(build(dense()))
    table = snugly.sweep([path, "nowhere.keras"], devices="esp32-s3", largest=True, batch_sizes=1)
    data = json.loads(json.dumps(table.to_data()))
    first, second = data["rows"]
    assert first["model"] == str(path)
    assert Size(first["peak"]) == table.rows[0].peak
    assert first["budget"]["device"] == first["device"] == "esp32-s3"
    assert (first["verdict"], first["error"]) == ("fits", None)
    assert (second["verdict"], second["peak"]) == (None, None)
    assert set(second["error"]) == {"code", "message", "hint"}
    assert [each["batch_size"] for each in data["largest"]] == [None, None]
    assert (data["training"], data["predictions"]) == (False, 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"models": []}, "SNG002"),
        ({"models": "a.keras", "devices": "jetson-nono"}, "SNG201"),
        ({"models": "a.keras", "batch_sizes": [0]}, "SNG002"),
        ({"models": "a.keras", "largest": True}, "SNG549"),
        ({"models": "a.keras", "runtime": "nothing"}, "SNG002"),
        ({"models": "a.keras", "engine": "tcp://127.0.0.1:1"}, "SNG587"),
        ({"models": "a.keras", "dimensions": {"sequence": -1}}, "SNG002"),
    ],
)
def test_what_cannot_be_swept_is_refused_at_once(arguments, code):
    with pytest.raises(snugly.InputError) as caught:
        snugly.sweep(**arguments)
    assert caught.value.code == code
