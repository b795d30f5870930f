"""predict_tflite: the public contract's attributes, verdicts, notes."""

import struct
import subprocess
import sys

import pytest

import snugly
from snugly.errors import InputError
from snugly.predicting.lite import LITE_RUNTIMES, predict_tflite


@pytest.mark.parametrize("runtime", LITE_RUNTIMES)
def test_every_runtime_keeps_the_contract(lite, runtime):
    prediction = predict_tflite(lite.build(lite.dense(32, 64)), runtime, memory="1MiB")
    assert prediction.low <= prediction.peak <= prediction.high
    assert sum(prediction.parts.values()) == prediction.requested
    sizes = [tensor.bytes for tensor in prediction.tensors]
    assert sizes == sorted(sizes, reverse=True)
    assert prediction.verdict == "fits"
    assert prediction.runtime == runtime


def test_micro_has_a_head_and_a_tail_and_is_the_whole_arena(lite):
    prediction = predict_tflite(lite.build(lite.dense()), "micro")
    assert set(prediction.parts) == {"head", "tail"}
    assert prediction.peak == prediction.parts["head"] + prediction.parts["tail"]
    assert prediction.arena >= prediction.peak
    assert prediction.verdict is None


def test_the_verdict_is_about_the_arena_that_starts(lite):
    # GIVEN a small model, whose planning needs more than stays in use
    model = lite.build(lite.dense())
    plain = predict_tflite(model, "micro")
    assert plain.arena > plain.peak
    # WHEN the budget lies between THEN it does not fit
    assert predict_tflite(model, "micro", memory=int(plain.arena)).verdict == "fits"
    assert predict_tflite(model, "micro", memory=int(plain.arena) - 1).verdict == "does-not-fit"


def test_a_microcontroller_means_micro_in_its_largest_block(lite):
    prediction = predict_tflite(lite.build(lite.dense()), device="stm32h743")
    assert prediction.runtime == "micro"
    assert prediction.budget.bytes == 512 * 1024
    assert prediction.peak < predict_tflite(lite.build(lite.dense()), "micro").peak


def test_a_file_larger_than_the_flash_does_not_fit(lite):
    model = lite.build(lite.dense(600, 1000))
    prediction = predict_tflite(model, device="nrf52840")
    assert prediction.flash > prediction.flash_offered
    assert prediction.verdict == "does-not-fit"


def test_an_unknown_operator_is_named_and_never_fits(lite):
    graph = lite.dense()
    graph.tensors.append(lite.T((1, 4)))
    graph.operators.append(lite.Op("Mystery", (3,), (4,)))
    for runtime in ("micro", "litert"):
        prediction = predict_tflite(lite.build(graph), runtime, memory="1GiB")
        assert prediction.at_least
        assert prediction.verdict == "uncertain"
        assert any("Mystery" in note for note in prediction.notes)


def test_a_file_for_an_accelerator_is_said_to_be_one(lite):
    graph = lite.dense()
    graph.operators[0] = lite.Op("ethos-u", (0,), (3,))
    notes = predict_tflite(lite.build(graph), "micro").notes
    assert any("Ethos-U" in note for note in notes)


def test_a_shape_that_is_data_is_said(lite):
    graph = lite.G(
        [lite.T((1, 8)), lite.T((2,), "INT32"), lite.T((2, 4))],
        [lite.Op("RESHAPE", (0, 1), (2,), "ReshapeOptions")],
        (0, 1),
        (2,),
    )
    prediction = predict_tflite(lite.build(graph), "litert", memory="1GiB")
    assert prediction.verdict == "uncertain"
    assert any("RESHAPE" in note for note in prediction.notes)


def test_a_plan_for_another_model_is_refused(lite):
    plan = struct.pack("<4i", 1, 1, 1, 0)
    with pytest.raises(InputError) as caught:
        predict_tflite(lite.build(lite.dense(), metadata={"OfflineMemoryAllocation": plan}))
    assert caught.value.code == "SNG563"


def test_subgraphs_that_call_each_other_for_ever_are_refused(lite):
    def caller(one, other):
        options = {"thenSubgraphIndex": one, "elseSubgraphIndex": other}
        return lite.G(
            [lite.T((1,), "BOOL"), lite.T((1, 6)), lite.T((1, 6))],
            [lite.Op("IF", (0, 1), (2,), "IfOptions", options)],
            (0, 1),
            (2,),
        )

    with pytest.raises(InputError, match="calls itself"):
        predict_tflite(lite.build(caller(0, 0)))
    doubling = [caller(index + 1, index + 1) for index in range(40)]
    end = lite.G([lite.T((1,), "BOOL"), lite.T((1, 6))], [], (0, 1), (1,))
    with pytest.raises(InputError, match="too often"):
        predict_tflite(lite.build(*doubling, end), "micro")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"runtime": "tensorflow"}, "SNG564"),
        ({"training": True}, "SNG565"),
        ({"batch_size": 8}, "SNG565"),
        ({"dimensions": {"time": 4}}, "SNG565"),
    ],
)
def test_what_a_file_cannot_be_asked_is_refused(lite, tmp_path, arguments, code):
    path = tmp_path / "model.tflite"
    path.write_bytes(lite.build(lite.dense()))
    assert snugly.predict(path).runtime == "litert"
    with pytest.raises(InputError) as caught:
        snugly.predict(str(path), **arguments)
    assert caught.value.code == code


def test_predicting_loads_no_tensorflow(lite, tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(lite.build(lite.dense()))
    code = (
        "import snugly, sys;"
        f" [snugly.predict({str(path)!r}, runtime=r) for r in ('micro', 'litert', 'xnnpack')];"
        " print('tensorflow' in sys.modules, 'keras' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "False"]


def test_the_arena_to_give_is_always_named(lite):
    prediction = predict_tflite(lite.build(lite.dense()), "micro")
    assert any(f"{int(prediction.arena):,} bytes" in note for note in prediction.notes)
