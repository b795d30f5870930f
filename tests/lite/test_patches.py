"""Models computed in patches: the same outputs, in less of the arena, on the real interpreters."""

import random
import struct
from pathlib import Path

import pytest
from tests.lite.patch_models import (
    BUILDERS,
    KINDS,
    Lite,
    Micro,
    convert,
    same_outputs,
    stages_of,
    with_stage,
)

from snugly.lite.patches import patched
from snugly.lite.patches_stage import UnpatchableError
from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.structures import HOST, TARGET_32

SHARED = Path(__file__).parents[3] / "shared/data/lite"
# int16 takes part where the converter quantises all operators.
FORMS = [(name, kind) for name in BUILDERS for kind in ("float", "int8")] + [("residuals", "int16")]


@pytest.fixture(scope="module")
def models():
    made = {}

    def give(name, kind):
        if (name, kind) not in made:
            made[name, kind] = convert(BUILDERS[name](), kind)
        return made[name, kind]

    return give


def convolutions(lite, *, size=24, kind="FLOAT32", metadata=None, **convolution):
    """Two convolutions and a mean, without TensorFlow."""
    width, scales = (4, 0) if kind == "FLOAT32" else (1, 1)
    draw = random.Random(0)  # noqa: S311 - the same weights each time

    def weights(*shape):
        count = shape[0] * shape[1] * shape[2] * shape[3]
        if kind == "FLOAT32":
            content = struct.pack(f"<{count}f", *(draw.uniform(-1, 1) for _ in range(count)))
        else:
            content = struct.pack(f"<{count}b", *(draw.randint(-3, 3) for _ in range(count)))
        return lite.T(shape, kind, content, scales=scales)

    def image(*shape):
        return lite.T(shape, kind, scales=scales)

    options = {"strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}
    options.update(convolution)
    bias = lite.T((8,), "FLOAT32" if kind == "FLOAT32" else "INT32", bytes(32), scales=scales)
    tensors = [
        image(1, size, size, 2),
        weights(8, 3, 3, 2),
        bias,
        image(1, size, size, 8),
        weights(8, 3, 3, 8),
        bias,
        image(1, size // 2, size // 2, 8),
        lite.T((2,), "INT32", struct.pack("<2i", 1, 2)),
        image(1, 8),
    ]
    assert width * 8 == 32 or kind == "INT8"
    operators = [
        lite.Op("CONV_2D", (0, 1, 2), (3,), "Conv2DOptions", options),
        lite.Op(
            "CONV_2D", (3, 4, 5), (6,), "Conv2DOptions", {**options, "strideW": 2, "strideH": 2}
        ),
        lite.Op("MEAN", (6, 7), (8,), "ReducerOptions"),
    ]
    return lite.build(lite.G(tensors, operators, (0,), (8,)), metadata=metadata)


@pytest.mark.tensorflow
@pytest.mark.parametrize(("name", "kind"), FORMS)
def test_every_run_of_layers_in_patches_gives_the_same_bits(models, name, kind):
    # GIVEN a model, and runs of its layers in patches of many kinds
    data = models(name, kind)
    layers, stages = stages_of(data)
    draw = random.Random(name)  # noqa: S311 - the same patches each time
    tried = 0
    for stage in draw.sample(stages, min(8, len(stages))):
        grid = draw.randint(1, 4), draw.randint(1, 4)
        try:
            made = with_stage(data, layers, stage, *grid)
        except UnpatchableError:
            continue
        tried += 1
        # WHEN both run in TFLite Micro and in LiteRT THEN not a bit differs
        assert same_outputs(Micro(data), Micro(made), 3) == 3, (stage, grid)
        assert same_outputs(Lite(data), Lite(made), 3) == 3, (stage, grid)
        if kind != "float":  # optimised kernels add floats in an order that depends on the size
            plain = KINDS.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            assert same_outputs(Lite(data, plain), Lite(made, plain), 3) == 3, (stage, grid)
    assert tried


@pytest.mark.tensorflow
@pytest.mark.parametrize(("name", "kind"), [("residuals", "int8"), ("channels_first", "float")])
def test_the_arena_shrinks_as_predicted_and_outputs_stay(models, name, kind):
    # GIVEN a model WHEN its arena is to be small
    data = models(name, kind)
    result = patched(data, least="head")
    # THEN the interpreter starts in what is predicted, and not in less
    assert result.after.head < result.before.head
    assert same_outputs(Micro(data), Micro(result.data, result.after.arena), 20) == 20
    with pytest.raises(RuntimeError):
        Micro(result.data, result.after.arena - 16)
    assert 0 <= result.extra_work < 1
    assert f"{result.extra_work:.1%}" in result.note


def test_a_difference_would_be_seen(lite):
    # GIVEN the same model with other weights WHEN outputs are compared THEN they differ
    data = convolutions(lite)
    weights = struct.pack("<f", 0.5) * (8 * 3 * 3 * 8)
    start = data.index(struct.pack("<f", random.Random(0).uniform(-1, 1)))  # noqa: S311
    other = data[:start] + weights[: 8 * 3 * 3 * 2 * 4] + data[start + 8 * 3 * 3 * 2 * 4 :]
    assert same_outputs(Micro(data), Micro(other), 3) == 0


@pytest.mark.parametrize("kind", ["FLOAT32", "INT8"])
def test_least_work_is_chosen_for_a_budget(lite, kind):
    data = convolutions(lite, size=48, kind=kind)
    smallest = patched(data)
    assert smallest.after.arena < smallest.before.arena
    # GIVEN budgets from the smallest arena up WHEN patches are chosen for them
    step = (smallest.before.arena - smallest.after.arena) // 4
    results = [patched(data, int(smallest.after.arena) + step * n) for n in range(4)]
    # THEN each fits, and more room means no more work
    for number, result in enumerate(results):
        assert result.after.arena <= smallest.after.arena + step * number
        assert same_outputs(Micro(data), Micro(result.data, result.after.arena), 3) == 3
    extra = [result.extra_work for result in results]
    assert extra == sorted(extra, reverse=True)


def test_what_fits_already_is_left_alone(lite):
    data = convolutions(lite)
    result = patched(data, "1MiB")
    assert result.data == data
    assert result.note == "the model fits as it is"
    assert not result.is_changed


def test_what_can_never_fit_says_the_least(lite):
    result = patched(convolutions(lite), 100)
    assert "no patches make it fit 100 B" in result.note
    assert f"{result.after.arena:,}" in result.note


def test_more_structures_are_counted_against_patches(lite):
    # GIVEN a model so small that operators cost more than patches save
    result = patched(convolutions(lite, size=6))
    # THEN nothing is changed, and the note says why
    assert result.patches == ()
    assert "patches gain nothing" in result.note


def test_a_dense_layer_is_named_as_what_stands_in_the_way(lite):
    result = patched(lite.build(lite.dense(64, 512)))
    assert not result.is_changed
    assert "FULLY_CONNECTED" in result.note


def test_dilation_is_right(lite):
    data = convolutions(lite, size=40, dilationWFactor=2, dilationHFactor=3, strideW=1)
    assert read_tflite(data).main.operators[1].options["dilation_height"] == 3
    layers, stages = stages_of(data)
    for stage in stages:
        made = with_stage(data, layers, stage, 3, 2)
        assert same_outputs(Lite(data), Lite(made), 3) == 3


def test_an_offline_plan_is_dropped_and_said_so(lite):
    plan = struct.pack("<12i", 1, 1, 9, *[-1] * 9)
    data = convolutions(lite, size=48, metadata={"OfflineMemoryAllocation": plan, "other": b"x"})
    result = patched(data)
    model = read_tflite(result.data)
    assert model.offline_offsets is None
    assert set(model.metadata) == {"other"}
    assert "offline memory plan" in result.note
    assert same_outputs(Micro(data), Micro(result.data), 3) == 3


def test_what_a_compiler_for_an_accelerator_planned_is_left_alone(lite):
    graph = lite.G(
        [lite.T((1, 64, 64, 4)) for _ in range(3)],
        [lite.Op("NEG", (0,), (1,)), lite.Op("ethos-u", (1,), (2,))],
        (0,),
        (2,),
    )
    plan = struct.pack("<6i", 1, 1, 3, -1, -1, -1)
    data = lite.build(graph, metadata={"OfflineMemoryAllocation": plan})
    result = patched(data, 1000)
    assert result.data == data
    assert "offline memory plan" in result.note


@pytest.mark.tensorflow
def test_a_batch_that_is_open_stays_open():
    # GIVEN a model for any number of images
    import keras

    image = keras.Input((40, 40, 3))
    x = keras.layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(image)
    x = keras.layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    x = keras.layers.MaxPool2D()(x)
    model = keras.Model(image, keras.layers.GlobalAveragePooling2D()(x))
    data = convert(model, "float")
    result = patched(data, least="head")
    assert result.patches
    # WHEN LiteRT runs it on three at once THEN the patches do too
    shape = (3, 40, 40, 3)
    assert same_outputs(Lite(data, shape=shape), Lite(result.data, shape=shape), 3) == 3
    assert same_outputs(Micro(data), Micro(result.data), 3) == 3


def test_weights_are_shared_not_copied(lite):
    data = convolutions(lite, size=64)
    result = patched(data)
    assert sum(part.rows * part.columns for part in result.patches) >= 4
    weights = read_tflite(data).weight_bytes
    new = read_tflite(result.data)
    # Slices and paddings are new constants, of some bytes each.
    assert new.weight_bytes - weights < 40 * len(new.main.operators)
    assert result.data.count(data[-256:]) == 1


def test_a_32_bit_target_keeps_less_and_is_planned_for_itself(lite):
    data = convolutions(lite, size=48)
    result = patched(data, target=TARGET_32)
    plan = plan_micro(read_tflite(result.data), TARGET_32)
    assert (plan.head, plan.tail) == (result.after.head, result.after.tail)
    assert result.after.arena <= patched(data, target=HOST).after.arena


@pytest.mark.skipif(not SHARED.exists(), reason="needs shared data")
def test_mobilenet_needs_less_than_an_npu_compiler_leaves_it():
    # GIVEN MobileNetV2 for 224×224 in int8, 2,452 KB of head as it is
    data = (SHARED / "mobilenet_v2_quantized_1x3x224x224.tflite").read_bytes()
    result = patched(data)
    # THEN patches bring it under the 353.5 KiB that Vela reaches for an NPU
    assert result.before.head == 2_451_840
    assert result.after.head <= 361_984
    assert result.extra_work < 0.03
    assert (
        same_outputs(Micro(data, result.before.arena), Micro(result.data, result.after.arena), 2)
        == 2
    )


@pytest.mark.skipif(not SHARED.exists(), reason="needs shared data")
@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("mlpt_vww_96_int8", 73_728),
        ("mlpt_vww_96_float", 294_912),
        ("mlpt_pretrainedResnet_quant", 49_152),
        ("person_detect", 55_296),
    ],
)
def test_published_models_shrink_and_give_the_same_bits(name, head):
    data = (SHARED / f"{name}.tflite").read_bytes()
    for least in ("arena", "head"):
        result = patched(data, least=least)
        assert result.before.head == head
        assert result.after.head < 0.8 * head
        assert same_outputs(Micro(data), Micro(result.data, result.after.arena), 20) == 20
