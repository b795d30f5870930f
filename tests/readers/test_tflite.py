"""Reading `.tflite` files: bounded, checked, and without TensorFlow."""

import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from snugly.errors import InputError, ProgramNotFoundError, UnreadableProgramError
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.flatbuffer import Buffer

SHARED = Path(__file__).parents[3] / "shared/data/lite"


def tiny_model(shape=(1, 4), buffer=0, inputs=(0,), version=3):
    """The smallest model, byte by byte: one subgraph with one tensor and no operator."""
    parts = bytearray(8)

    def put(data, alignment=4):
        while len(parts) % alignment:
            parts.append(0)
        parts.extend(data)
        return len(parts) - len(data)

    def vector(numbers):
        return put(struct.pack(f"<I{len(numbers)}i", len(numbers), *numbers))

    def table(fields):
        """Fields by number: ("i", value) in place, or ("o", position) of what lies before."""
        layout = [0] * (max(fields, default=-1) + 1)
        for place, number in enumerate(fields):
            layout[number] = 4 + 4 * place
        size = 4 + 4 * len(fields)
        virtual = put(struct.pack(f"<HH{len(layout)}H", 4 + 2 * len(layout), size, *layout))
        start = put(bytes(size))
        struct.pack_into("<i", parts, start, start - virtual)
        for place, (kind, value) in enumerate(fields.values()):
            where = start + 4 + 4 * place
            # Offsets lead forwards; what they lead to is put behind, by the caller, and patched.
            struct.pack_into("<i", parts, where, value)
            if kind == "o":
                patches.append((where, value))
        return start

    patches = []
    waiting = {}

    def later(name):
        waiting.setdefault(name, None)
        return ("o", 0)

    model = table({0: ("i", version), 2: later("subgraphs"), 4: later("buffers")})
    places = [where for where, _ in patches]
    patches.clear()
    subgraph_list = put(struct.pack("<II", 1, 0))
    struct.pack_into("<I", parts, places[0], subgraph_list - places[0])
    buffer_list = put(struct.pack("<II", 1, 0))
    struct.pack_into("<I", parts, places[1], buffer_list - places[1])
    empty = table({})
    struct.pack_into("<I", parts, buffer_list + 4, empty - buffer_list - 4)
    subgraph = table({0: later("tensors"), 1: later("inputs"), 2: later("outputs")})
    struct.pack_into("<I", parts, subgraph_list + 4, subgraph - subgraph_list - 4)
    places = [where for where, _ in patches]
    patches.clear()
    tensor_list = put(struct.pack("<II", 1, 0))
    for place, target in zip(places, (tensor_list, vector(list(inputs)), vector([0])), strict=True):
        struct.pack_into("<I", parts, place, target - place)
    tensor = table({0: later("shape"), 2: ("i", buffer)})
    struct.pack_into("<I", parts, tensor_list + 4, tensor - tensor_list - 4)
    numbers = vector(list(shape))
    struct.pack_into("<I", parts, patches[0][0], numbers - patches[0][0])
    struct.pack_into("<I", parts, 0, model)
    parts[4:8] = b"TFL3"
    return bytes(parts)


def test_a_model_is_read():
    model = read_tflite(tiny_model((2, 3)))
    (tensor,) = model.main.tensors
    assert (tensor.shape, tensor.type.name, tensor.bytes) == ((2, 3), "FLOAT32", 24)
    assert (model.main.inputs, model.main.outputs, model.main.operators) == ((0,), (0,), ())


def test_a_path_and_its_bytes_give_the_same(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_model())
    assert read_tflite(path) == read_tflite(path.read_bytes())
    assert read_tflite(str(path)).size == path.stat().st_size


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "SNG561"),
        (b"not a model", "SNG561"),
        (bytes(4) + b"TFL3", "SNG560"),
        (b"\xff\xff\xff\x7fTFL3" + bytes(64), "SNG560"),
        (tiny_model((1, -4)), "SNG560"),
        (tiny_model((2**31 - 1,) * 3), "SNG562"),
        (tiny_model((1,) * 33), "SNG560"),
        (tiny_model(buffer=7), "SNG560"),
        (tiny_model(inputs=(3,)), "SNG560"),
        (tiny_model(inputs=(-2,)), "SNG560"),
    ],
)
def test_what_is_wrong_is_said_with_a_code_and_a_hint(content, code):
    with pytest.raises(UnreadableProgramError) as caught:
        read_tflite(content)
    assert caught.value.code == code
    assert caught.value.hint


def test_an_empty_file_and_no_file_are_told_apart(tmp_path):
    (tmp_path / "empty.tflite").touch()
    with pytest.raises(UnreadableProgramError, match="empty"):
        read_tflite(tmp_path / "empty.tflite")
    with pytest.raises(ProgramNotFoundError):
        read_tflite(tmp_path / "none.tflite")
    with pytest.raises(UnreadableProgramError):
        read_tflite(tmp_path)


def test_every_shortened_model_is_refused_or_read():
    whole = tiny_model()
    refused = 0
    for length in range(len(whole)):
        try:
            read_tflite(whole[:length])
        except InputError:
            refused += 1
    assert refused > len(whole) // 2


def test_changed_bytes_give_an_error_or_a_model_never_anything_else():
    # GIVEN a model and a thousand ways to damage it
    whole = bytearray(tiny_model())
    draw = random.Random(0)  # noqa: S311 - the same damage each time
    outcomes = set()
    for _ in range(1000):
        broken = bytearray(whole)
        for _ in range(draw.randint(1, 6)):
            broken[draw.randrange(8, len(broken))] = draw.randrange(256)
        # WHEN it is read THEN there is a model or an error with a hint
        try:
            outcomes.add(type(read_tflite(bytes(broken))).__name__)
        except InputError as error:
            assert error.hint  # noqa: PT017 - either outcome is right
            outcomes.add("error")
    assert outcomes == {"LiteModel", "error"}


def test_a_field_that_nobody_reads_must_lie_in_the_file_too():
    # GIVEN a model whose version, or whose list of signatures, lies far behind its end
    whole = tiny_model()
    root = int.from_bytes(whole[:4], "little")
    layout = root - int.from_bytes(whole[root : root + 4], "little", signed=True)
    count = (int.from_bytes(whole[layout : layout + 2], "little") - 4) // 2
    for field in (0, count - 1):
        broken = bytearray(whole)
        slot = layout + 4 + 2 * field
        assert whole[slot] | whole[slot + 1]
        broken[slot : slot + 2] = b"\xf0\xff"
        # THEN it is refused, as every runtime refuses it
        with pytest.raises(UnreadableProgramError, match="outside itself"):
            read_tflite(bytes(broken))


def test_what_is_read_out_of_a_file_is_bounded():
    buffer = Buffer(bytes(16))
    with pytest.raises(UnreadableProgramError, match="repeats itself"):
        buffer.spend(10_000_000)


def test_reading_loads_no_tensorflow(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_model())
    code = (
        "import sys; from snugly.readers.tflite import read_tflite;"
        f" read_tflite({str(path)!r}); print('tensorflow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(not SHARED.exists(), reason="needs shared data")
def test_published_models_are_read():
    model = read_tflite(SHARED / "mobilenet_v2_quantized_1x3x224x224.tflite")
    assert (len(model.main.tensors), len(model.main.operators)) == (212, 84)
    assert model.main.tensors[model.main.inputs[0]].bytes == 3 * 224 * 224
