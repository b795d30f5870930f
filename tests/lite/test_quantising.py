"""Quantisation as a step of shrinking: only where it is allowed, and where memory really falls."""

import numpy as np
import pytest
from ai_edge_litert import interpreter as litert
from tests.lite import micro_models as micro

from snugly import lite as smaller
from snugly.errors import InputError
from snugly.lite.measuring import run_once
from snugly.lite.quantising import forms_for, quantised, samples_for, why_not
from snugly.predicting.lite import predict_tflite
from snugly.readers.tflite import read_tflite

ALLOWED = "changes-training"


def network(kind="FLOAT32", size=24):
    """A small network for images that ends in a mean, as mobile ones do."""
    model = micro.Model(1)
    given = model.tensor((1, size, size, 3), kind)
    values = model.convolution(given, 8, 3, kind, stride=2)
    for count, stride in ((8, 1), (16, 2)):
        values = model.depthwise(values, 1, 3, kind, stride=stride)
        values = model.convolution(values, count, 1, kind)
    mean = model.tensor((1, 16), kind, scale=4.0)
    axes = model.integers([1, 2])
    model.operator("MEAN", (values, axes), (mean,), "ReducerOptions", keepDims=False)
    return model.finish((given,), (mean,))


def least(source, **arguments):
    return int(smaller.shrink(source, **arguments).after.arena)


def steps_of(shrunk):
    return {step.name: step for step in shrunk.steps}


def outputs(source, images):
    """The model's answers by LiteRT, as real numbers."""
    kind = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = litert.Interpreter(model_content=source, experimental_op_resolver_type=kind)
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    found = []
    for image in images:
        if given["dtype"] == np.int8:
            scale, zero = given["quantization"]
            image = np.clip(np.round(image / scale) + zero, -128, 127).astype(np.int8)  # noqa: PLW2901
        interpreter.set_tensor(given["index"], image)
        interpreter.invoke()
        values = interpreter.get_tensor(made["index"]).astype(float)
        scale, zero = made["quantization"]
        found.append((values - zero) * scale if scale else values)
    return np.stack(found)


def test_a_float_model_is_quantised_where_nothing_else_fits(tmp_path):
    # GIVEN a float model, samples of its inputs, and half of what it needs however it is planned
    source = network()
    images = np.random.default_rng(3).random((20, 1, 24, 24, 3), np.float32)
    np.save(tmp_path / "s.npy", images)
    budget = least(source) // 2
    # WHEN it is allowed THEN it is quantised, fits, and says what that did
    shrunk = smaller.shrink(source, budget, allow=ALLOWED, samples=tmp_path / "s.npy")
    assert shrunk.fits
    step = shrunk.steps[0]
    assert (step.name, step.applied, step.safety) == ("quantisation", True, ALLOWED)
    assert "20 inputs of s.npy" in step.note
    # AND each step's saving adds up
    saved = sum(step.saved for step in shrunk.steps)
    assert saved == shrunk.before.arena - shrunk.after.arena
    # AND the interpreters load it: Micro in just the arena that is named
    assert shrunk.measured is not None
    assert shrunk.measured.after == shrunk.after.peak < shrunk.measured.before
    micro.run(shrunk.data, 2, arena=int(shrunk.after.arena))
    # AND the difference that is reported is the difference that there is
    apart = np.abs(outputs(source, images) - outputs(shrunk.data, images))
    (row,) = shrunk.accuracy.outputs
    assert row.largest == pytest.approx(apart.max())
    assert row.mean == pytest.approx(apart.mean())
    assert 0 < row.relative < 0.2
    assert row.agreement > 0.5
    assert not shrunk.accuracy.made_up


def test_inputs_keep_their_types_where_that_fits():
    # GIVEN a model whose inner tensors are far larger than its input
    model = micro.Model(1)
    given = model.tensor((1, 16, 16, 1), "FLOAT32")
    wide = model.convolution(given, 32, 3, "FLOAT32")
    source = model.finish((given,), (model.convolution(wide, 1, 3, "FLOAT32"),))
    # WHEN the budget has room for a float input beside int8 tensors
    shrunk = smaller.shrink(source, least(source) * 6 // 10, allow=ALLOWED, kernels="any")
    assert shrunk.fits
    main = read_tflite(shrunk.data).main
    kinds = {main.tensors[index].type.name for index in (*main.inputs, *main.outputs)}
    # THEN what calls it need not change
    assert kinds == {"FLOAT32"}
    assert "int8: " in shrunk.steps[0].note


def test_without_samples_they_are_made_up_and_that_is_said():
    shrunk = smaller.shrink(network(), least(network()) // 2, allow=ALLOWED)
    assert shrunk.accuracy.made_up
    assert "not representative" in shrunk.steps[0].note
    assert any("made-up" in note for note in shrunk.notes)


def test_nothing_is_quantised_unless_it_is_allowed():
    source = network()
    for allow in ("same-result", "changes-rounding"):
        shrunk = smaller.shrink(source, least(source) // 2, allow=allow)
        assert not shrunk.fits
        step = steps_of(shrunk)["quantisation"]
        assert not step.applied
        assert "permits it" in step.note
        assert shrunk.accuracy is shrunk.measured is None


def test_what_fits_is_not_quantised():
    source = network()
    shrunk = smaller.shrink(source, least(source), allow=ALLOWED)
    assert shrunk.fits
    assert "quantisation" not in steps_of(shrunk)


def test_micro_never_gets_a_hybrid():
    # GIVEN the forms that are offered to it, and all others
    source = network()
    model = read_tflite(source)
    samples = samples_for(model, None)
    made = {one.form: one.data for one in quantised(source, samples, forms_for("litert"))}
    assert set(forms_for("micro")) == {"int8", "int8-throughout"}
    for form, data in made.items():
        run = run_once(data, "micro")
        # THEN those that are offered start, and the hybrid, which is not, would be refused
        assert (run.refusal is None) == (form != "dynamic")
        prediction = predict_tflite(data, "micro")
        assert prediction.at_least == (form == "dynamic")


def test_where_memory_would_rise_both_numbers_are_said():
    # GIVEN a model of weights mostly, which LiteRT would keep twice if they were int8
    model = micro.Model(1)
    given, output = model.tensor((1, 400), "FLOAT32"), model.tensor((1, 300), "FLOAT32")
    inputs = (given, model.weights((300, 400), "FLOAT32"), -1)
    model.operator("FULLY_CONNECTED", inputs, (output,), "FullyConnectedOptions")
    source = model.finish((given,), (output,))
    # WHEN it is to need less than it can
    shrunk = smaller.shrink(source, 64, "litert", ALLOWED)
    # THEN weights alone are refused, with what was predicted and what was measured
    said = " ".join((*shrunk.notes, *(step.note for step in shrunk.steps)))
    assert "weights is refused" in said
    assert "(predicted)" in said
    assert "(measured)" in said
    assert shrunk.after.peak <= shrunk.before.peak


def test_forms_for_litert_run_in_litert():
    source = network()
    for runtime in ("litert", "xnnpack"):
        shrunk = smaller.shrink(source, None, runtime, ALLOWED)
        assert shrunk.after.peak < shrunk.before.peak
        assert shrunk.measured.after < shrunk.measured.before
        assert outputs(shrunk.data, np.zeros((1, 1, 24, 24, 3), np.float32)).shape == (1, 1, 16)


def test_what_cannot_be_quantised_says_why():
    assert "already" in why_not(read_tflite(network("INT8")))
    model = micro.Model()
    given, output = model.tensor((1, 8), "FLOAT32"), model.tensor((1, 8), "FLOAT32")
    model.operator("Mine", (given,), (output,))
    source = model.finish((given,), (output,))
    assert "custom operator Mine" in why_not(read_tflite(source))
    shrunk = smaller.shrink(source, 1, allow=ALLOWED)
    assert "not possible" in steps_of(shrunk)["quantisation"].note


def test_samples_that_are_none_are_an_error(tmp_path):
    np.save(tmp_path / "s.npy", np.zeros((4, 5, 5, 3)))
    with pytest.raises(InputError, match="takes 1×24×24×3"):
        smaller.shrink(network(), 64, allow=ALLOWED, samples=tmp_path / "s.npy")


@pytest.mark.parametrize(
    ("package", "message"),
    [
        ("raise ImportError('gone')", 'pip install "snugly[quantise]"'),
        ("import os; os.abort()", "ended by SIGABRT"),
    ],
)
def test_a_quantiser_that_is_missing_or_crashes_is_a_note(tmp_path, monkeypatch, package, message):
    (tmp_path / "ai_edge_quantizer.py").write_text(package)
    monkeypatch.syspath_prepend(tmp_path)
    shrunk = smaller.shrink(network(), 64, allow=ALLOWED)
    step = steps_of(shrunk)["quantisation"]
    assert not step.applied
    assert message in step.note


def test_smaller_images_come_last():
    # GIVEN an int8 model, which cannot be quantised, and too little for it
    source = network("INT8", 32)
    budget = least(source) * 8 // 10
    shrunk = smaller.shrink(source, budget, allow=ALLOWED)
    # THEN its images are made smaller, only as much as is needed, and its outputs stay
    assert shrunk.fits
    step = steps_of(shrunk)["input size"]
    assert step.applied
    assert "instead of 32×32" in step.note
    assert "measure the accuracy again" in step.note
    before, after = read_tflite(source).main, read_tflite(shrunk.data).main
    assert after.tensors[after.inputs[0]].shape[1] < 32
    assert after.tensors[after.outputs[0]].shape == before.tensors[before.outputs[0]].shape
    micro.run(shrunk.data, 2, arena=int(shrunk.after.arena))


def test_a_float_model_is_quantised_before_its_images_get_smaller():
    source = network(size=32)
    budget = least(source) // 8
    shrunk = smaller.shrink(source, budget, allow=ALLOWED)
    applied = [step.name for step in shrunk.steps if step.applied]
    assert applied[:2] == ["quantisation", "input size"]
    assert shrunk.accuracy is not None
    micro.run(shrunk.data, 2, arena=int(shrunk.after.arena))


def test_images_that_a_model_fixes_are_not_made_smaller():
    # GIVEN one whose outputs would change with them, and one that has none
    model = micro.Model(1)
    given = model.tensor((1, 32, 32, 3))
    source = model.finish((given,), (model.convolution(given, 4, 3),))
    step = steps_of(smaller.shrink(source, 64, allow=ALLOWED))["input size"]
    assert "change their shape" in step.note
    model = micro.Model(1)
    given, output = model.tensor((1, 32)), model.tensor((1, 32))
    model.operator("NEG", (given,), (output,))
    step = steps_of(smaller.shrink(model.finish((given,), (output,)), 64, allow=ALLOWED))
    assert "no input of four dimensions" in step["input size"].note
