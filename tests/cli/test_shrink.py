"""`snugly shrink`: what it prints, what it writes, and its exit codes."""

import json
import subprocess
import sys

import numpy as np
import pytest
from tests.lite import micro_models as micro
from tests.training import configs

from snugly.cli import main
from snugly.lite import shrink
from snugly.predicting.lite import predict_tflite
from snugly.reporting.shrink_config import config_data, draw_config
from snugly.reporting.terminal import show
from snugly.training.detection import predict_pipeline_config


def model():
    made = micro.Model(1)
    given = made.tensor((1, 24, 24, 3))
    values = made.convolution(given, 8, 3)
    values = made.depthwise(values, 1, 3)
    return made.finish((given,), (made.convolution(values, 8, 1),))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.tflite").write_bytes(model())
    return tmp_path


LEAST = int(shrink(model()).after.arena)


def test_a_model_that_fits_is_written_and_told(folder, capsys):
    assert main(["shrink", "model.tflite", "--memory", str(LEAST), "-o", "out.tflite"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"fits: an arena of {LEAST:,} B")
    assert "offline plan" in said.out
    assert "same-result" in said.out
    assert "predicted" in said.out
    assert said.err == "written: out.tflite\n"
    assert predict_tflite(folder / "out.tflite", "micro").arena == LEAST
    assert (folder / "model.tflite").read_bytes() == model()


def test_what_does_not_fit_is_not_written_and_the_least_is_said(folder, capsys):
    arguments = ["shrink", "model.tflite", "--memory", str(LEAST - 1), "-o", "out.tflite"]
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert said.out.startswith(
        f"error[SNG566]: the least that was found is an arena of {LEAST:,} B"
    )
    assert "at the peak" in said.out
    assert "hint:" in said.out
    assert said.err == "not written: out.tflite\n"
    assert not (folder / "out.tflite").exists()
    # unless the best that there is was asked for: the exit code stays
    assert main([*arguments, "--best-effort"]) == 1
    assert capsys.readouterr().err == "written: out.tflite\n"
    assert predict_tflite(folder / "out.tflite", "micro").arena == LEAST


def test_a_file_that_is_larger_than_the_flash_is_said_to_be(folder, capsys):
    made = micro.Model()
    given, output = made.tensor((1, 2000)), made.tensor((1, 1200))
    weights = made.weights((1200, 2000), "INT8")
    made.operator("FULLY_CONNECTED", (given, weights, -1), (output,), "FullyConnectedOptions")
    (folder / "large.tflite").write_bytes(made.finish((given,), (output,)))
    assert main(["shrink", "large.tflite", "--device", "stm32h743"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("error[SNG566]: the file's 2,4")
    assert "of flash" in said.splitlines()[0]


def test_json_has_everything_and_is_alone_on_stdout(capsys):
    assert main(["shrink", "model.tflite", "--output-format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema_version"] == 1
    assert found["fits"] is True
    assert found["after"]["arena"] == LEAST < found["before"]["arena"]
    assert {"peak", "low", "high", "parts", "tensors", "verdict"} <= found["after"].keys()
    assert [step["name"] for step in found["steps"]] == ["offline plan", "operator order"]
    assert found["steps"][0]["saved"] == found["before"]["arena"] - LEAST
    assert (found["written"], found["code"], found["changed"]) == (None, None, True)
    assert main(["shrink", "model.tflite", "--memory", "1KiB", "--output-format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["code"] == "SNG566"


def test_a_header_is_written_beside(folder, capsys):
    arguments = ["shrink", "model.tflite", "-o", "out.tflite", "--emit-header", "out.h"]
    assert main(arguments) == 0
    assert capsys.readouterr().err == "written: out.tflite\nwritten: out.h\n"
    text = (folder / "out.h").read_text()
    assert f": {LEAST};" in text
    assert "namespace snugly_out {" in text
    assert main([*arguments, "--device", "esp32-s3"]) == 0
    small = predict_tflite(folder / "out.tflite", device="esp32-s3").arena
    assert f"kArenaBytes = {int(small)};" in (folder / "out.h").read_text()
    # WHEN nothing fits THEN no header either
    (folder / "out.h").unlink()
    assert main([*arguments, "--memory", "1KiB"]) == 1
    assert not (folder / "out.h").exists()


def test_other_runtimes_and_kernels(capsys):
    assert main(["shrink", "model.tflite", "--runtime", "litert"]) == 0
    assert capsys.readouterr().out.startswith("unchanged: ")
    assert main(["shrink", "model.tflite", "--kernels", "any"]) == 0
    assert "outputs lie over" not in capsys.readouterr().out


def test_an_unknown_operator_leaves_it_uncertain(folder, capsys):
    made = micro.Model()
    given, output = made.tensor((1, 8)), made.tensor((1, 8))
    made.operator("Mine", (given,), (output,))
    (folder / "custom.tflite").write_bytes(made.finish((given,), (output,)))
    assert main(["shrink", "custom.tflite", "--memory", "1MiB"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("warning[SNG102]: ")
    assert "Mine" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.tflite"], "there is no file"),
        (["model.tflite", "--memory", "4 bananas"], "cannot read"),
        (["model.tflite", "--memory", "1KiB", "--device", "esp32-s3"], "not allowed with"),
        (["model.tflite", "--device", "esp33"], "esp33"),
        (["model.tflite", "--runtime", "tensorflow"], "SNG564"),
        (["model.tflite", "--allow", "anything"], "invalid choice"),
        (["model.tflite", "--host-memory", "1GiB"], "is for pipeline.config"),
        (["model.tflite", "-o", "model.tflite"], "is the program itself"),
        (["model.tflite", "-o", "nowhere/out.tflite"], "cannot write"),
        (["model.tflite", "-o", "."], "cannot write"),
        (["model.tflite", "-o", "x" * 5000], "cannot write"),
        (["model.tflite", "-o", "a\0b"], "cannot write"),
        (["model.tflite", "--emit-header", "nowhere/out.h"], "cannot write"),
        (["model.tflite", "-o", "out.h", "--emit-header", "out.h"], "cannot be one file"),
        (["folder.tflite"], "cannot read"),
        (["model.tflite", "--emit-header", "out.h", "--runtime", "litert"], "SNG569"),
        (["broken.tflite"], "SNG560"),
        (["text.tflite"], "SNG561"),
        (["empty.tflite"], "SNG561"),
        (["npu.tflite"], "SNG567"),
        (["train.py:model"], "there is no script"),
        (["model.keras", "--emit-header", "out.h"], "is for .tflite files"),
        (["pipeline.config"], "no budget"),
        (["pipeline.config", "--host-memory", "1GiB", "--runtime", "micro"], "SNG564"),
    ],
)
def test_bad_input_is_exit_2_with_a_hint(folder, capsys, arguments, message):
    (folder / "broken.tflite").write_bytes(model()[:500])
    (folder / "text.tflite").write_text("not a model")
    (folder / "empty.tflite").touch()
    (folder / "folder.tflite").mkdir()
    (folder / "pipeline.config").write_text(configs.ssd_mobilenet_v2_fpnlite())
    made = micro.Model()
    given, output = made.tensor((1, 8)), made.tensor((1, 8))
    made.operator("ethos-u", (given,), (output,))
    (folder / "npu.tflite").write_bytes(made.finish((given,), (output,)))
    assert main(["shrink", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert "hint:" in said.err
    assert "Traceback" not in said.err
    assert not (folder / "out.h").exists()


def test_a_configuration_gets_a_diff_and_the_safety_of_each_change(folder, capsys):
    (folder / "pipeline.config").write_text(configs.ssd_mobilenet_v2_fpnlite())
    arguments = ["shrink", "pipeline.config", "--allow", "changes-training", "-o", "out.config"]
    # GIVEN a budget for the host that the file as it is does not keep
    assert main([*arguments, "--host-memory", "1KiB"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("error[SNG101]: ")
    assert said.err == "not written: out.config\n"
    # WHEN there is room for less of the same THEN it fits, and the change is shown
    assert main([*arguments, "--host-memory", "1KiB", "--output-format", "json"]) == 1
    least = json.loads(capsys.readouterr().out)
    enough = str(least["after"]["host"])
    assert main([*arguments, "--host-memory", enough]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("fits: ")
    assert "changes-training" in said.out
    assert "+++" in said.out
    assert said.err == "written: out.config\n"
    assert (folder / "out.config").read_text() == least["text"]


def test_a_configuration_that_needs_more_permission_says_which(folder, capsys):
    (folder / "pipeline.config").write_text(configs.ssd_mobilenet_v2_fpnlite())
    assert main(["shrink", "pipeline.config", "--host-memory", "1MiB"]) == 1
    assert "hint: `--allow changes-training` permits more" in capsys.readouterr().out


def test_a_configuration_that_fits_is_left_as_it_is(folder, capsys):
    (folder / "pipeline.config").write_text(configs.ssd_mobilenet_v2_fpnlite())
    assert main(["shrink", "pipeline.config", "--host-memory", "1TiB"]) == 0
    assert "nothing was changed" in capsys.readouterr().out


@pytest.mark.tensorflow
def test_predict_says_what_a_configuration_needs(folder, capsys):
    (folder / "pipeline.config").write_text(configs.ssd_mobilenet_v2_fpnlite())
    arguments = ["predict", "pipeline.config", "--memory", "1TiB"]
    assert main([*arguments, "--output-format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    keys = {"peak", "low", "high", "requested", "resident", "parts", "tensors", "verdict"}
    assert keys <= found.keys()
    assert found["low"] <= found["peak"] <= found["high"]
    assert found["verdict"] == "fits"
    assert found["host"] > 0


def test_a_configuration_is_drawn_with_what_each_setting_costs(folder, capsys):
    # GIVEN a prediction of the host alone, which needs no TensorFlow
    (folder / "pipeline.config").write_text(configs.ssd_mobilenet_v2_fpnlite())
    prediction = predict_pipeline_config("pipeline.config", memory="1KiB", device_bytes=False)
    show(draw_config(prediction))
    said = capsys.readouterr().out
    assert said.startswith("warning[SNG102]: one training step needs an unknown amount")
    assert prediction.host_parts[0].name in said
    assert config_data(prediction)["peak"] is None


def test_names_from_the_file_cannot_steer_the_terminal(folder, capsys):
    made = micro.Model()
    given, output = made.tensor((1, 800)), made.tensor((1, 800))
    made.operator("\x1b[2JMine" + "x" * 900, (given,), (output,))
    made._graph.tensors[0].name = "\x1b]0;title\x07"
    (folder / "odd.tflite").write_bytes(made.finish((given,), (output,)))
    assert main(["shrink", "odd.tflite", "--memory", "1KiB"]) == 1
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "Mine" in said


def test_predict_refuses_what_the_configuration_says_itself(folder, capsys):
    (folder / "pipeline.config").write_text(configs.ssd_mobilenet_v2_fpnlite())
    for more in (["--batch-size", "4"], ["--html", "p.html"], ["--runtime", "micro"]):
        assert main(["predict", "pipeline.config", *more]) == 2
        assert "does not go with a pipeline.config" in capsys.readouterr().err


def test_shrinking_a_tflite_loads_no_tensorflow(folder):
    code = (
        "import sys; from snugly.cli import main\n"
        "assert main(['shrink', 'model.tflite', '-o', 'out.tflite']) == 0\n"
        "print('LOADED', sorted({'tensorflow', 'keras', 'flatbuffers'} & sys.modules.keys()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    assert run.stdout.splitlines()[-1] == "LOADED []"


def floats():
    made = micro.Model(1)
    given = made.tensor((1, 24, 24, 3), "FLOAT32")
    values = made.convolution(given, 8, 3, "FLOAT32")
    return made.finish((given,), (made.convolution(values, 8, 1, "FLOAT32"),))


def test_quantising_is_told_with_what_it_did_to_outputs(folder, capsys):
    # GIVEN a float model, and a budget that only a quantised one keeps
    (folder / "float.tflite").write_bytes(floats())
    np.save(folder / "inputs.npy", np.random.default_rng(0).random((6, 24, 24, 3)))
    budget = str(int(shrink(floats()).after.arena) // 2)
    words = ["shrink", "float.tflite", "--memory", budget, "--allow", "changes-training"]
    # WHEN it may be quantised
    assert main([*words, "--samples", "inputs.npy", "-o", "out.tflite"]) == 0
    said = capsys.readouterr()
    # THEN the change is told in words
    assert said.out.startswith("fits: ")
    assert "changes-training" in said.out
    flat = " ".join(said.out.split())
    assert "measured on 6 samples, outputs differ by up to" in flat
    assert "of their range" in flat
    assert "bytes" in flat
    assert "written: out.tflite" in said.err
    # AND in figures
    assert main([*words, "--output-format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"]["made_up"] is True
    (row,) = found["accuracy"]["outputs"]
    assert {"largest", "mean", "range", "relative", "agreement"} <= row.keys()
    assert found["measured"]["after"] < found["measured"]["before"]
    assert found["measured"]["provenance"] == "measured"


def test_quantising_loads_no_tensorflow(folder):
    (folder / "float.tflite").write_bytes(floats())
    code = (
        "import sys; from snugly.cli import main\n"
        "main(['shrink', 'float.tflite', '--memory', '64', '--allow', 'changes-training'])\n"
        "print('LOADED', sorted({'tensorflow', 'keras'} & sys.modules.keys()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    assert run.stdout.splitlines()[-1] == "LOADED []"
    assert "quantisation" in run.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["model.tflite", "--samples", "s.npy"], "changes results"),
        (["model.tflite", "--samples", "s.npy", "--allow", "changes-training"], "no file"),
        (["pipeline.config", "--host-memory", "1GiB", "--samples", "s.npy"], "for .tflite"),
        (["none.keras", "-o", "out.tflite"], "there is no file"),
        (["none.py:model", "--device", "esp32-s3"], "there is no script"),
    ],
)
def test_samples_and_conversions_that_make_no_sense_are_refused(folder, capsys, more, message):
    (folder / "pipeline.config").write_text(configs.ssd_mobilenet_v2_fpnlite())
    assert main(["shrink", *more]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "hint:" in said
    assert not (folder / "out.tflite").exists()


MODEL = """
import keras

def build():
    x = entry = keras.Input((128, 32))
    for _ in range(6):
        x = keras.layers.LayerNormalization()(keras.layers.Dense(32, "tanh")(x))
    model = keras.Model(entry, keras.layers.Dense(4)(keras.layers.GlobalAveragePooling1D()(x)))
    model.compile("sgd", "mse", jit_compile=False)
    return model

number = 3
"""


@pytest.mark.tensorflow
def test_the_plan_for_a_models_training_is_shown(folder, capsys):
    # GIVEN a script with a model, and a budget that is half of what its step takes
    (folder / "train.py").write_text(MODEL)
    words = ["shrink", "train.py:build", "--batch-size", "64", "--output-format", "json"]
    # WHEN it is to be shrunk to that
    assert main([*words, "--memory", "20MiB"]) == 0
    said = json.loads(capsys.readouterr().out)
    # THEN what is done, and that it fits, is said
    assert said["verdict"] == "fits"
    assert said["after"]["high"] <= 20 << 20 < said["before"]["high"]
    assert [step["name"] for step in said["steps"]] == ["recomputation"]
    # AND with far too little, what the least is
    assert main([*words, "--memory", "100KiB"]) == 1
    assert "least" in json.loads(capsys.readouterr().out)["message"]
    assert main(["shrink", "train.py:build", "--batch-size", "64", "--memory", "20MiB"]) == 0
    assert "recomputation" in capsys.readouterr().out
    assert main(["shrink", "train.py:number", "--memory", "1GiB"]) == 2
    assert main([*words, "--memory", "1GiB", "-o", "small.keras"]) == 2
