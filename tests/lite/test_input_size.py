"""Other input sizes: what LiteRT's own resizing gives, or a refusal that names the operator."""

import struct

import numpy as np
import pytest
from tests.lite.patch_models import BUILDERS, KINDS, Lite, Micro, convert, same_outputs

from snugly.errors import InputError
from snugly.lite.input_size import resized
from snugly.lite.patches import patched
from snugly.readers.tflite import read_tflite

PLAIN = KINDS.BUILTIN_WITHOUT_DEFAULT_DELEGATES


def ints(lite, *values):
    return lite.T((len(values),), "INT32", struct.pack(f"<{len(values)}i", *values))


def network(lite, tail, *, size=16, shapes=()):
    """A convolution of stride 2 to 4 channels, then what `tail` gives: operators and tensors."""
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("float32").tobytes()
    tensors = [
        lite.T((1, size, size, 3)),
        lite.T((4, 3, 3, 3), "FLOAT32", weights),
        lite.T((4,), "FLOAT32", bytes(16)),
        lite.T((1, -(-size // 2), -(-size // 2), 4)),
        *shapes,
    ]
    options = {"strideW": 2, "strideH": 2, "dilationWFactor": 1, "dilationHFactor": 1}
    operators = [lite.Op("CONV_2D", (0, 1, 2), (3,), "Conv2DOptions", options), *tail]
    return lite.build(lite.G(tensors, operators, (0,), (operators[-1].outputs[0],)))


def mean(lite, size=16):
    return network(
        lite,
        [lite.Op("MEAN", (3, 4), (5,), "ReducerOptions")],
        size=size,
        shapes=[ints(lite, 1, 2), lite.T((1, 4))],
    )


def reshape(lite, shape, made):
    return network(
        lite,
        [lite.Op("RESHAPE", (3, 4), (5,), "ReshapeOptions")],
        shapes=[ints(lite, *shape), lite.T(made)],
    )


def test_a_network_with_a_mean_takes_every_size(lite):
    data = mean(lite)
    for height, width in ((8, 8), (1, 1), (7, 30), (64, 16)):
        # GIVEN the model for another size, and LiteRT's own resizing of the old one
        result = resized(data, height, width)
        reference = Lite(data, PLAIN, shape=(1, height, width, 3))
        # THEN they are the same model
        assert result.output_shapes == ((1, 4),)
        assert read_tflite(result.data).main.tensors[0].shape == (1, height, width, 3)
        assert same_outputs(Lite(result.data, PLAIN), reference, 5) == 5
        Micro(result.data, result.after.arena)
    assert result.safety == "changes-training"
    assert "accuracy" in result.note


def test_smaller_images_need_a_smaller_arena(lite):
    result = resized(mean(lite), 8, 8)
    assert result.after.head < result.before.head / 2


@pytest.mark.parametrize(
    ("shape", "made"),
    [((1, 256), (1, 256)), ((-1, 256), (1, 256)), ((-1, 4), (64, 4))],
)
def test_a_reshape_that_breaks_is_named(lite, shape, made):
    # GIVEN a size written into the model, or one that would make more examples of one image
    data = reshape(lite, shape, made)
    with pytest.raises(InputError, match="RESHAPE") as caught:
        resized(data, 32, 32)
    assert caught.value.code == "SNG577"


def test_a_reshape_to_the_same_number_of_other_pixels_is_named(lite):
    # 8 × 8 and 4 × 16 pixels are as many, but not the same ones; LiteRT would go on.
    data = reshape(lite, (1, 256), (1, 256))
    assert Lite(data, PLAIN, shape=(1, 8, 32, 3))
    with pytest.raises(InputError, match="RESHAPE"):
        resized(data, 8, 32)


def test_a_reshape_with_an_open_dimension_follows(lite):
    data = reshape(lite, (1, -1), (1, 256))
    result = resized(data, 32, 32)
    assert result.output_shapes == ((1, 1024),)
    assert "1×1024 instead of 1×256" in result.note
    assert same_outputs(Lite(result.data, PLAIN), Lite(data, PLAIN, (1, 32, 32, 3)), 3) == 3


def test_a_dense_layer_that_would_take_one_image_for_four_is_named(lite):
    # GIVEN a dense layer right behind the image; LiteRT would make four rows of a larger one
    data = network(
        lite,
        [lite.Op("FULLY_CONNECTED", (3, 4, -1), (5,), "FullyConnectedOptions")],
        shapes=[lite.T((2, 256), "FLOAT32", bytes(2048)), lite.T((1, 2))],
    )
    reference = Lite(data, PLAIN, shape=(1, 32, 32, 3))
    assert reference([np.zeros((1, 32, 32, 3), "float32")])[0].shape == (4, 2)
    for size in (32, 8, 17):
        with pytest.raises(InputError, match="FULLY_CONNECTED"):
            resized(data, size, size)


def test_a_pooling_of_the_whole_image_is_named_when_it_would_see_less_or_more(lite):
    pool = {"strideW": 8, "strideH": 8, "filterWidth": 8, "filterHeight": 8, "padding": 1}
    data = network(
        lite,
        [lite.Op("AVERAGE_POOL_2D", (3,), (4,), "Pool2DOptions", pool)],
        shapes=[lite.T((1, 1, 1, 4))],
    )
    for size in (8, 24, 64):
        with pytest.raises(InputError, match="AVERAGE_POOL_2D"):
            resized(data, size, size)
    assert resized(data, 15, 16).output_shapes == ((1, 1, 1, 4),)


def test_a_constant_that_no_longer_matches_is_named(lite):
    data = network(
        lite,
        [lite.Op("ADD", (3, 4), (5,), "AddOptions")],
        shapes=[lite.T((1, 8, 8, 4), "FLOAT32", bytes(1024)), lite.T((1, 8, 8, 4))],
    )
    # At 1 × 1 the one pixel would be added to every place of the constant.
    for size in (8, 32, 1, 2):
        with pytest.raises(InputError, match="ADD"):
            resized(data, size, size)


def two_convolutions(lite):
    """Two convolutions, the first of which is worth patching."""
    options = {"strideW": 2, "strideH": 2, "dilationWFactor": 1, "dilationHFactor": 1}
    return network(
        lite,
        [
            lite.Op("NEG", (3,), (4,)),
            lite.Op("CONV_2D", (4, 5, 2), (6,), "Conv2DOptions", options),
        ],
        size=32,
        shapes=[
            lite.T((1, 16, 16, 4)),
            lite.T((4, 3, 3, 4), "FLOAT32", bytes(576)),
            lite.T((1, 8, 8, 4)),
        ],
    )


@pytest.mark.parametrize("size", [(8, 8), (64, 64), (32, 40)])
def test_patches_of_fixed_places_cannot_be_resized(lite, size):
    # GIVEN a model that was patched for its size
    data = two_convolutions(lite)
    result = patched(data, least="head")
    assert result.patches
    with pytest.raises(InputError, match=r"SLICE|CONCATENATION"):
        resized(result.data, *size)


def test_an_operator_without_a_rule_is_named_only_if_its_input_changes(lite):
    data = network(
        lite,
        [lite.Op("Strange", (3,), (4,))],
        shapes=[lite.T((1, 8, 8, 4))],
    )
    with pytest.raises(InputError, match=r"Strange .* is not known here"):
        resized(data, 8, 8)
    # 15 rows give 8 rows of output as 16 do: nothing that reaches it is another size.
    assert resized(data, 15, 15).output_shapes == ((1, 8, 8, 4),)


def test_shapes_that_the_model_computes_are_followed(lite):
    # GIVEN a flatten as converters write it for an open batch: SHAPE, STRIDED_SLICE, PACK, RESHAPE
    tensors = [
        lite.T((4,), "INT32"),
        ints(lite, 0),
        ints(lite, 1),
        ints(lite, 1),
        lite.T((), "INT32"),
        lite.T((), "INT32", struct.pack("<i", -1)),
        lite.T((2,), "INT32"),
        lite.T((1, 256)),
    ]
    data = network(
        lite,
        [
            lite.Op("SHAPE", (3,), (4,), "ShapeOptions", {"outType": 2}),
            lite.Op(
                "STRIDED_SLICE", (4, 5, 6, 7), (8,), "StridedSliceOptions", {"shrinkAxisMask": 1}
            ),
            lite.Op("PACK", (8, 9), (10,), "PackOptions", {"valuesCount": 2}),
            lite.Op("RESHAPE", (3, 10), (11,), "ReshapeOptions"),
        ],
        shapes=tensors,
    )
    result = resized(data, 32, 32)
    assert result.output_shapes == ((1, 1024),)
    assert same_outputs(Lite(result.data, PLAIN), Lite(data, PLAIN, (1, 32, 32, 3)), 3) == 3


@pytest.mark.parametrize("size", [(0, 8), (8, -1), (1 << 20, 8)])
def test_impossible_sizes_are_refused(lite, size):
    with pytest.raises(InputError) as caught:
        resized(mean(lite), *size)
    assert caught.value.code == "SNG576"


def test_a_model_without_an_image_is_refused(lite):
    with pytest.raises(InputError, match="no image"):
        resized(lite.build(lite.dense()), 8, 8)


def test_of_several_images_one_must_be_named(lite):
    graph = lite.G(
        [lite.T((1, 8, 8, 1)), lite.T((1, 8, 8, 1)), lite.T((1, 8, 8, 1))],
        [lite.Op("ADD", (0, 1), (2,), "AddOptions")],
        (0, 1),
        (2,),
    )
    data = lite.build(graph)
    with pytest.raises(InputError, match="several images"):
        resized(data, 4, 4)
    with pytest.raises(InputError, match="ADD"):
        resized(data, 4, 4, input_name="t0")
    with pytest.raises(InputError, match="no input 't9'"):
        resized(data, 4, 4, input_name="t9")


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["float", "int8"])
@pytest.mark.parametrize("name", ["residuals", "paddings", "branches", "channels_first"])
def test_converted_models_give_what_litert_gives(name, kind):
    data = convert(BUILDERS[name](), kind)
    for size in ((48, 48), (20, 35), (13, 16)):
        result = resized(data, *size)
        shape = read_tflite(result.data).main.tensors[read_tflite(data).main.inputs[0]].shape
        assert same_outputs(Lite(result.data, PLAIN), Lite(data, PLAIN, shape), 3) == 3
        outputs = Lite(result.data, PLAIN)([np.zeros(shape, Lite(data).inputs[0]["dtype"])])
        assert tuple(one.shape for one in outputs) == result.output_shapes
        Micro(result.data, result.after.arena)


@pytest.mark.tensorflow
def test_a_converted_flatten_is_named():
    with pytest.raises(InputError, match="RESHAPE"):
        resized(convert(BUILDERS["odd_sizes"](), "float"), 66, 94)
