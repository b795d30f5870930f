"""TFLite Micro's error lines with the model: the arena that works first time."""

import json
import os
import subprocess
import sys

import pytest
from tests.accuracy.lite_arena import cases, random_models

import snugly
from snugly.cli.main import main
from snugly.errors import SnuglyError
from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.structures import HOST, TARGET_32, TARGET_ARM

HEAD_LINE = (
    "Failed to resize buffer. Requested: {}, available 64, missing: 9\nAllocateTensors() failed"
)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return random_models(tmp_path_factory.mktemp("arenas"), 3)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    from tests.lite.conftest import Lite

    lite = Lite()
    path = tmp_path_factory.mktemp("large") / "large.tflite"
    graph = lite.G(
        [lite.T((1, 64, 64, 2)) for _ in range(2)], [lite.Op("NEG", (0,), (1,))], (0,), (1,)
    )
    path.write_bytes(lite.build(graph))
    return path


def arenas(path):
    return [plan_micro(read_tflite(path), kind).smallest_arena for kind in (HOST, TARGET_32)]


def test_the_arena_that_is_named_works_first_time_and_is_the_least(models):
    # `python -m tests.accuracy.lite_arena` does the same a hundred times, on published models too.
    for case in cases(models, 6):
        assert case.works, case
        assert case.is_least, case


def test_a_log_of_firmware_gets_the_arena_of_32_bits(models):
    host, small = arenas(models[0])
    finding = snugly.explain("AllocateTensors() failed", model=models[0])[0]
    assert finding.code == "SNG788"
    assert f"arena of {small:,} bytes" in finding.cause
    assert f"tensor_arena[{small}]" in finding.remedy
    assert f"tflite-micro needs {host:,}" in finding.remedy
    assert "predicted" in finding.cause


def test_a_device_decides_the_layout(models):
    plan = plan_micro(read_tflite(models[0]), TARGET_ARM)
    finding = snugly.explain("AllocateTensors() failed", model=models[0], device="stm32h743")[0]
    assert f"arena of {plan.smallest_arena:,} bytes" in finding.cause


def test_structures_of_64_bits_are_recognised(models):
    # GIVEN a process that ended with no other word; 272 bytes are an allocator of 64 bits
    log = "Failed to allocate tail memory. Requested: 272, available 24, missing: 248"
    assert (
        f"arena of {arenas(models[0])[0]:,} bytes" in snugly.explain(log, model=models[0])[0].cause
    )
    # WHEN the size is one of both THEN an exit code tells that it was no firmware
    log = "Failed to allocate tail memory. Requested: 16, available 8, missing: 8"
    host, small = arenas(models[0])
    assert f"{small:,} bytes" in snugly.explain(log, model=models[0])[0].cause
    assert f"{host:,} bytes" in snugly.explain(log, -11, model=models[0])[0].cause


def test_a_larger_head_than_reference_kernels_need_is_added(large):
    plan = plan_micro(read_tflite(large), TARGET_32)
    finding = snugly.explain(HEAD_LINE.format(plan.head + 1600), model=large)[0]
    assert f"arena of {plan.smallest_arena + 1600:,} bytes" in finding.cause
    assert any("optimised for the chip" in line for line in finding.evidence)


def test_a_smaller_head_than_the_model_has_raises_a_doubt(large):
    finding = snugly.explain(HEAD_LINE.format(9000), model=large)[0]
    assert any("is it the model that the log is about" in line for line in finding.evidence)


def test_what_is_not_known_of_a_model_makes_it_at_least(tmp_path):
    from tests.lite.conftest import Lite

    lite = Lite()
    graph = lite.dense()
    graph.tensors.append(lite.T((1, 4)))
    graph.operators.append(lite.Op("MyOperator", (3,), (4,)))
    path = tmp_path / "custom.tflite"
    path.write_bytes(lite.build(graph))
    finding = snugly.explain("AllocateTensors() failed", model=path)[0]
    assert "at least" in finding.cause
    assert any("MyOperator" in line for line in finding.evidence)


GARBAGE = (
    "tensorflow/lite/micro/kernels/kernel_util.cc:516 false was not true.\n"
    "Node FULLY_CONNECTED (number 41) failed to prepare with status 1"
)


def test_a_kernel_that_reads_garbage_in_a_small_arena_is_memory(models):
    # GIVEN the line of a kernel that found no type it knows, which alone says nothing of memory
    assert snugly.explain(GARBAGE)[0].code == "SNG789"
    # WHEN the model has nothing that kernels refuse THEN the arena is the cause
    finding = snugly.explain(GARBAGE, 1, model=models[0])[0]
    assert (finding.code, finding.is_memory) == ("SNG788", True)
    assert f"an arena of {arenas(models[0])[0]:,} bytes" in finding.cause


def test_a_kernel_that_the_model_explains_is_not_memory(tmp_path):
    # GIVEN a model with an EXP of int8
    from tests.lite.conftest import Lite

    lite = Lite()
    graph = lite.G(
        [lite.T((1, 4), "INT8", scales=1) for _ in range(2)],
        [lite.Op("EXP", (0,), (1,))],
        (0,),
        (1,),
    )
    path = tmp_path / "exp.tflite"
    path.write_bytes(lite.build(graph))
    log = "micro/kernels/exp.cc:41 input->type != kTfLiteFloat32 (INT8 != FLOAT32)\n"
    log += "Node EXP (number 0) failed to prepare with status 1"
    finding = snugly.explain(log, 1, model=path)[0]
    assert not finding.is_memory
    assert any("EXP of int8" in line for line in finding.evidence)


def test_other_findings_are_left_alone(models):
    log = "Didn't find op for builtin opcode 'CONV_2D' version '1'"
    assert snugly.explain(log, model=models[0]) == snugly.explain(log)
    assert snugly.explain("all is well", model=models[0]) == []


@pytest.mark.parametrize(
    "line",
    [
        "Too many buffers (max is 3)",
        "Failed to allocate memory for node_and_registrations.",
        "Unable to allocate TfLiteAffineQuantization.",
        (
            "Failed to allocate temp. memory for tensor 81, subgraph 0\n"
            "kernels/depthwise_conv_common.cc:109 output != nullptr was not true.\n"
            "Node DEPTHWISE_CONV_2D (number 23) failed to prepare with status 1"
        ),
    ],
)
def test_every_way_in_which_the_arena_runs_out_is_memory(line):
    finding = snugly.explain(line)[0]
    assert finding.code == "SNG788"
    assert finding.is_memory


def test_hybrid_models_are_not_memory():
    finding = snugly.explain("Hybrid models are not supported on TFLite Micro.")[0]
    assert not finding.is_memory


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x20\0\0\0TFL3"])
def test_a_file_that_is_no_model_is_an_input_error(tmp_path, content):
    path = tmp_path / "bad.tflite"
    path.write_bytes(content)
    with pytest.raises(SnuglyError):
        snugly.explain("AllocateTensors() failed", model=path)


def test_the_command_takes_a_model(models, tmp_path, capsys):
    log = tmp_path / "serial.log"
    log.write_text("AllocateTensors() failed\n")
    arguments = ["explain", str(log), "--model", str(models[0]), "--output-format", "json"]
    assert main(arguments) == 1
    finding = json.loads(capsys.readouterr().out)["findings"][0]
    assert f"{arenas(models[0])[1]:,} bytes" in finding["cause"]
    assert main([*arguments, "--device", "esp32-s3"]) == 1
    capsys.readouterr()
    assert main(["explain", str(log), "--device", "esp32-s3"]) == 2
    assert "--model" in capsys.readouterr().err
    assert main([*arguments[:3], str(tmp_path / "none.tflite")]) == 2


def test_no_tensorflow_is_loaded(models):
    code = (
        "import sys, snugly\n"
        "assert snugly.explain('AllocateTensors() failed', model=sys.argv[1])\n"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, os.fspath(models[0])], check=True)
