"""Weights of fewer bits: what LiteRT and XNNPACK make of them when they load a model."""

import pytest
from tests.accuracy.lite_heap import measured
from tests.lite import micro_models as micro
from tests.lite.packed_models import FORMS, fully_connected, networks, packed

from snugly.graph import Kind
from snugly.predicting.lite import predict_tflite
from snugly.predicting.lite_delegation import Delegation
from snugly.predicting.lite_litert import plan_litert
from snugly.predicting.lite_workspace import EXTRA
from snugly.predicting.lite_xnnpack import plan_xnnpack
from snugly.readers.tflite import read_tflite

NETWORKS = dict(networks())


def regions(model, rows):
    """Bytes from the first to the last of the arena, and of what persists, by their addresses."""
    plan = plan_litert(model)
    found = []
    for tensors in (plan.main, plan.lasting):
        known = {tensor.tensor for tensor in tensors if tensor.tensor is not None}
        places = [(start, start + size) for index, start, size in rows if index in known]
        found.append((min(low for low, _ in places), max(high for _, high in places)))
    return [high - low for low, high in found]


def planned(model):
    """The same as it is planned, of tensors that the file names."""
    plan = plan_litert(model)
    whole = max(tensor.offset + tensor.request.bytes for tensor in plan.main)
    return [whole, plan.persistent]


@pytest.mark.parametrize("form", ["weights", "weights per tensor", "halves"])
def test_weights_that_are_made_float_again_persist_to_the_byte(lite, tmp_path, form):
    # GIVEN models of all kinds of layers WHEN the real interpreter allocates them
    paths = []
    for name, source in NETWORKS.items():
        paths.append(tmp_path / f"{name}.tflite")
        paths[-1].write_bytes(packed(source, form))
    rows = lite.measure_litert(paths)
    for path, found in zip(paths, rows, strict=True):
        model = read_tflite(path)
        # THEN both arenas are as large as they were planned to be
        assert regions(model, found) == planned(model), path.stem
        # AND what persists are the weights, as floats
        weights = [one for one in plan_litert(model).lasting if one.kind is Kind.WEIGHT]
        assert len(weights) == sum(one.name == "DEQUANTIZE" for one in model.main.operators)


def test_weights_that_are_used_as_they_are_do_not_persist_as_floats():
    for source in NETWORKS.values():
        dynamic = plan_litert(read_tflite(packed(source, "dynamic")))
        assert all(one.kind is not Kind.WEIGHT for one in dynamic.lasting)


def test_what_shares_the_place_of_a_tensor_that_persists_has_its_own(lite, tmp_path):
    # GIVEN dequantised weights that a RESHAPE, which works in place, hands on
    graph = lite.G(
        [
            lite.T((1, 40)),
            lite.T((40, 40), "INT8", bytes(1600), scales=1),
            lite.T((40, 40)),
            lite.T((2,), "INT32", b"\x28\0\0\0\x28\0\0\0"),
            lite.T((40, 40)),
            lite.T((1, 40)),
        ],
        [
            lite.Op("DEQUANTIZE", (1,), (2,), "DequantizeOptions"),
            lite.Op("RESHAPE", (2, 3), (4,), "ReshapeOptions"),
            lite.Op("FULLY_CONNECTED", (0, 4, -1), (5,), "FullyConnectedOptions"),
        ],
        (0,),
        (5,),
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(lite.build(graph))
    model = read_tflite(path)
    # THEN both are there, one in each arena
    assert regions(model, lite.measure_litert([path])[0]) == planned(model)
    assert plan_litert(model).persistent == 6400
    assert any(tensor.tensor == 4 for tensor in plan_litert(model).main)


def heap(tmp_path, source):
    path = tmp_path / "model.tflite"
    path.write_bytes(source)
    return measured(path, "xnnpack")["heap"]


def test_xnnpack_keeps_unpacked_weights_beside_the_packed_ones(tmp_path):
    # GIVEN a model with weights of floats, of int8 and of float16
    source = dict(networks(8))["convolutions"]
    made = {form: packed(source, form) for form in ("float", "weights", "halves")}
    predicted = {form: int(predict_tflite(made[form], "xnnpack").peak) for form in made}
    taken = {form: heap(tmp_path, made[form]) for form in made}
    # THEN int8 costs as much more as is predicted: all weights as floats, whatever the CPU packs
    more = taken["weights"] - taken["float"]
    assert more == pytest.approx(predicted["weights"] - predicted["float"], rel=0.05)
    assert more > 100_000
    # AND halves, which convolutions read as they are, cost next to nothing
    assert taken["halves"] == pytest.approx(taken["float"], rel=0.02)
    assert predicted["halves"] == pytest.approx(predicted["float"], rel=0.02)


def test_what_xnnpack_leaves_to_litert_parts_the_model():
    # GIVEN depthwise layers with int8 weights beside floats, which it has no kernel for
    model = read_tflite(packed(NETWORKS["mobile"], "dynamic"))
    delegation = Delegation(model.main)
    names = [[model.main.operators[step].name for step in part] for part in delegation.parts]
    assert names == [["CONV_2D"], ["CONV_2D"], ["CONV_2D", "MEAN", "FULLY_CONNECTED"]]
    assert not delegation.unpacked
    # THEN what passes between stays in LiteRT's arena, with the scratch of those layers
    plan = plan_xnnpack(model)
    scratch = [one for one in plan.main if one.name == "scratch of DEPTHWISE_CONV_2D"]
    assert len(scratch) == 2 * 3
    # AND where a window is read, or a row, its input is there in int8
    copies = [one.operator for one in plan.main if one.name.startswith("quantised input")]
    assert copies == ["CONV_2D", "FULLY_CONNECTED"]


def test_weights_that_both_need_are_there_twice():
    # GIVEN dequantised weights of a dense layer
    model = micro.Model(1)
    given = model.tensor((1, 16), "FLOAT32")
    output = fully_connected(model, given, 8, 16)
    weights, size = 2, 8 * 16 * 4
    alone = read_tflite(packed(model.finish((given,), (output,)), "weights"))
    assert Delegation(alone.main).unpacked == {weights}
    assert plan_xnnpack(alone).persistent == size + EXTRA
    # WHEN an operator that XNNPACK does not know reads them as well
    other = model.tensor((8, 16), "FLOAT32")
    model.operator("Mine", (weights,), (other,))
    both = read_tflite(packed(model.finish((given,), (output, other)), "weights"))
    # THEN LiteRT has its own
    assert Delegation(both.main).unpacked == {weights}
    assert plan_xnnpack(both).persistent == 2 * size + EXTRA


def test_a_dense_layer_lays_out_what_is_given_to_it(tmp_path):
    # GIVEN a dense layer of a large input, which has to become one of two dimensions, or need not
    made = {}
    for kept in (False, True):
        model = micro.Model(1)
        given, output = model.tensor((1, 20_000), "FLOAT32"), model.tensor((1, 16), "FLOAT32")
        inputs = (given, model.weights((16, 20_000), "FLOAT32"), model.bias(16, "FLOAT32"))
        options = {"keepNumDims": kept}
        model.operator("FULLY_CONNECTED", inputs, (output,), "FullyConnectedOptions", **options)
        made[kept] = model.finish((given,), (output,))
    # THEN it is there twice, or once
    predicted = {kept: int(predict_tflite(made[kept], "xnnpack").peak) for kept in made}
    assert predicted[False] - predicted[True] == 80_000 + EXTRA
    taken = heap(tmp_path, made[False]) - heap(tmp_path, made[True])
    assert taken == pytest.approx(80_000, rel=0.05)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("runtime", ["litert", "xnnpack"])
def test_every_byte_has_a_part(form, runtime):
    prediction = predict_tflite(packed(NETWORKS["residual"], form), runtime)
    assert sum(prediction.parts.values()) == prediction.peak
    assert ("weight" in prediction.parts) == (
        runtime == "xnnpack" or form not in {"float", "dynamic"}
    )
