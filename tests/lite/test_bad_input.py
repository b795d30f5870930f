"""Files and budgets that cannot be: an error with a hint or an answer that says so, for all."""

import struct

import pytest
from tests.accuracy import lite_fuzz
from tests.lite import micro_models as micro

from snugly import lite as smaller
from snugly.errors import InputError
from snugly.lite.input_choices import sizes_of
from snugly.predicting.lite import LITE_RUNTIMES, predict_tflite
from snugly.readers.tflite import read_tflite


def image_model(size=48):
    """Two convolutions whose inner image is the largest tensor by far."""
    model = micro.Model(1)
    given = model.tensor((1, size, size, 3))
    inner = model.convolution(given, 16, 3)
    return model.finish((given,), (model.convolution(inner, 4, 3, stride=4),))


def huge(*shape):
    """A model that declares a shape without having the data."""
    model = micro.Model(1)
    given, output = model.tensor((1, 8)), model.tensor((1, 8))
    model.operator("NEG", (given,), (output,))
    source = bytearray(model.finish((given,), (output,)))
    numbers = struct.pack("<3i", 2, 1, 8)  # the length of the shape's vector, and the shape
    for _ in range(2):
        place = bytes(source).index(numbers)
        source[place : place + 12] = struct.pack("<3i", 2, *shape)
    return bytes(source)


WHOLE = image_model(8)
BROKEN = {
    "no bytes": (b"", "SNG561"),
    "cut short": (WHOLE[: len(WHOLE) // 2], "SNG560"),
    "another identifier": (WHOLE[:4] + b"TFL2" + WHOLE[8:], "SNG561"),
    "random behind the identifier": (WHOLE[:8] + bytes(range(256)) * 4, "SNG560"),
    "an offset out of the file": (struct.pack("<I", 1 << 30) + WHOLE[4:], "SNG560"),
    "a negative shape": (huge(1, -8), "SNG560"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_model_is_an_error_wherever_it_goes(name):
    source, code = BROKEN[name]
    for work in (predict_tflite, smaller.shrink, sizes_of):
        with pytest.raises(InputError) as caught:
            work(source)
        assert caught.value.code == code
        assert caught.value.hint


def test_an_error_calls_a_file_by_its_own_name(tmp_path):
    # GIVEN a file that is no model WHEN it is predicted or shrunk THEN both say which file it is
    path = tmp_path / "of_mine.tflite"
    path.write_bytes(BROKEN["another identifier"][0])
    for work in (predict_tflite, smaller.shrink):
        with pytest.raises(InputError, match=r"of_mine\.tflite is not a \.tflite file"):
            work(path)


@pytest.mark.parametrize("runtime", LITE_RUNTIMES)
def test_a_huge_shape_is_a_number_not_an_allocation(runtime):
    # GIVEN tensors of 4 TiB that are declared and nowhere stored
    source = huge(1 << 21, 1 << 21)
    # WHEN the file is predicted and shrunk THEN the bytes are said, and nothing is written into it
    assert predict_tflite(source, runtime, "1MiB").verdict == "does-not-fit"
    shrunk = smaller.shrink(source, "1MiB", runtime, "changes-training")
    assert not shrunk.fits
    assert shrunk.after.peak >= 1 << 42
    assert read_tflite(shrunk.data).offline_offsets is None


def test_below_the_largest_tensor_the_least_is_said_and_what_patches_give():
    # GIVEN a budget that the largest tensor alone does not fit
    source = image_model()
    largest = max(tensor.bytes for tensor in read_tflite(source).main.tensors)
    planned = smaller.shrink(source)
    assert planned.after.arena > largest > 20_000
    # WHEN patches go below it THEN it fits, with the work that they cost
    shrunk = smaller.shrink(source, 20_000)
    step = next(step for step in shrunk.steps if step.name == "patches")
    assert shrunk.fits
    assert shrunk.after.arena <= 20_000 < largest
    assert "more multiply-accumulates" in step.note
    assert step.saved == planned.after.arena - shrunk.after.arena
    arena = int(shrunk.after.arena)
    assert micro.run(shrunk.data, 5, arena=arena) == micro.run(source, 5)
    # AND what no patches reach is said with the least that they do
    least = smaller.shrink(source, 1000)
    assert not least.fits
    assert 1000 < least.after.arena <= shrunk.after.arena
    assert next(step for step in least.steps if step.name == "patches").applied


def test_damaged_files_are_answers_or_errors():
    # GIVEN a few of the files of the long run WHEN they are shrunk
    models = lite_fuzz.seeds()
    found = {lite_fuzz.outcome(number, models, 0) for number in range(20_000, 20_120)}
    # THEN all are one or the other; anything else would have been raised
    assert {"answer", "SNG560"} <= found
    assert not [one for one in found if one.startswith("CRASH")]
