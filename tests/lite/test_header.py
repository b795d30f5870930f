"""The C++ header: what firmware declares, safe for every name, and a compiler takes it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.lite import micro_models as micro

from snugly.lite.header import header_text, identifier
from snugly.predicting.lite import predict_tflite
from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.micro_kernels import CUSTOM_KERNELS, KERNELS
from snugly.readers.tflite.structures import HOST, TARGET_32

EXAMPLE = Path(__file__).parents[2] / "examples/micro"


def model():
    made = micro.Model()
    given = made.tensor((1, 8, 8, 3))
    values = made.convolution(given, 4, 3)
    output = made.tensor((1, 8, 8, 4))
    made.operator("MyOperator", (values,), (output,))
    return made.finish((given,), (output,))


def compiles(text, tmp_path, *flags):
    """Whether a compiler takes it; without one, that its braces are even is all that is known."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return text.count("{") == text.count("}")
    path = tmp_path / "model.h"
    path.write_text(text)
    command = [compiler, "-std=c++11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable"]
    return (
        subprocess.run([*command, "-fsyntax-only", *flags, str(path)], check=False).returncode == 0
    )


def test_the_arena_is_the_predicted_one_for_both_widths(tmp_path):
    source = model()
    text = header_text(source, "small.tflite")
    small, host = (plan_micro(read_tflite(source), one) for one in (TARGET_32, HOST))
    assert f"sizeof(void*) == 4 ? {small.smallest_arena} : {host.smallest_arena};" in text
    assert f"kHeadBytes = {host.head};" in text
    assert f"kModelBytes = {len(source)};" in text
    assert compiles(text, tmp_path, "-x", "c++")


def test_of_a_device_there_is_one_size():
    arena = int(predict_tflite(model(), device="esp32-s3").arena)
    text = header_text(model(), "small.tflite", arena=arena)
    assert f"constexpr std::size_t kArenaBytes = {arena};" in text


def test_every_tensor_of_the_head_has_its_offset():
    source = model()
    rows = re.findall(r"\{(\d+), (\d+), (\d+)u, (\d+)u, ", header_text(source, "m"))
    buffers = plan_micro(read_tflite(source), HOST).buffers
    assert [tuple(map(int, row)) for row in rows] == [
        (one.subgraph, one.tensor, one.offset, one.planned.bytes)
        for one in buffers
        if one.tensor is not None
    ]


def test_operators_are_named_as_the_resolver_names_them():
    text = header_text(model(), "m")
    assert "resolver.AddConv2D();" in text
    assert 'resolver.AddCustom("MyOperator", ...);' in text
    assert "kOperatorCount = 2;" in text


def test_resolver_names_look_like_functions():
    from snugly.lite.header import _resolver

    for name in KERNELS:
        found = _resolver(name, is_custom=name in CUSTOM_KERNELS)
        assert re.fullmatch(
            r'resolver\.(Add[A-Z]\w+\(\);|AddCustom\("CIRCULAR_BUFFER", \.\.\.\);)', found
        )


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("small.tflite", "small"),
        ("/tmp/My Model-2.tflite", "my_model_2"),  # noqa: S108 - a name, not a file
        ("…", "model"),
        ("class.tflite", "class"),
    ],
)
def test_names_become_words_of_cpp(name, word, tmp_path):
    assert identifier(name) == word
    assert compiles(header_text(model(), name), tmp_path, "-x", "c++")


def test_names_inside_the_model_cannot_leave_their_string(tmp_path):
    # GIVEN tensors and operators with names that would end a string, a comment or a line
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    parsed = schema.ModelT.InitFromPackedBuf(bytearray(model()), 0)
    parsed.subgraphs[0].tensors[0].name = '"}; #error \n*/ \\ ??/ é'
    parsed.operatorCodes[1].customCode = 'x"); system("y\n#error'
    builder = flatbuffers.Builder(1024)
    builder.Finish(parsed.Pack(builder), file_identifier=b"TFL3")
    # WHEN the header is written THEN it compiles, and every line is one of its own
    text = header_text(bytes(builder.Output()), '*/ "\n#error')
    assert compiles(text, tmp_path, "-x", "c++")
    assert not [line for line in text.splitlines() if line.startswith("#error")]


def test_a_model_without_tensors_in_its_head(lite, tmp_path):
    empty = lite.build(lite.G([lite.T((0,))], [], (), ()))
    text = header_text(empty, "empty")
    assert "kTensors = nullptr" in text
    assert compiles(text, tmp_path, "-x", "c++")


def test_the_example_uses_only_what_the_header_has(tmp_path):
    # GIVEN the firmware of the example
    main = (EXAMPLE / "main.cc").read_text()
    text = header_text(model(), "small.tflite")
    used = set(re.findall(r"snugly_small::(\w+)", main))
    # THEN each name of the header that it uses is there
    assert used
    for name in used:
        assert re.search(rf"\b{name}\b", text), name
    # AND a compiler takes it, with the few declarations of TFLite Micro that it needs
    (tmp_path / "small.h").write_text(text)
    (tmp_path / "small_model.h").write_text(
        "alignas(16) static const unsigned char small_tflite[] = {0};\n"
    )
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is not None:
        folders = ["-I", str(tmp_path), "-I", str(Path(__file__).parent / "micro_headers")]
        command = [compiler, "-std=c++17", "-fsyntax-only", *folders, str(EXAMPLE / "main.cc")]
        assert subprocess.run(command, check=False).returncode == 0
