"""Rewritten files: what is not changed stays byte for byte, and both interpreters read the rest."""

import random
import struct

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tests.lite.patch_models import Lite, Micro, same_outputs

from snugly.errors import InputError, UnreadableProgramError
from snugly.lite.rewriting import NewOperator, Rewriting
from snugly.lite.rewriting_layout import Fields, Number, Old, Vector, data, integers, lay_out, text
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.flatbuffer import INT32, UINT64, Buffer


def repeated(content):
    rewriting = Rewriting(content)
    for number in range(len(rewriting.model.main.operators)):
        rewriting.keep(number)
    return rewriting


def test_a_model_that_is_only_repeated_says_the_same(lite):
    content = lite.build(lite.dense(), metadata={"note": b"hello"})
    made = repeated(content).finish()
    old, new = read_tflite(content), read_tflite(made)
    assert old.subgraphs == new.subgraphs
    assert (old.buffers, old.metadata) == (new.buffers, new.metadata)
    assert same_outputs(Micro(content), Micro(made), 3) == 3
    assert same_outputs(Lite(content), Lite(made), 3) == 3


def test_a_new_operator_takes_the_place_of_tensors_that_are_gone(lite):
    # GIVEN three operators in a row
    graph = lite.G(
        [lite.T((1, 6)) for _ in range(4)],
        [lite.Op("NEG", (n,), (n + 1,)) for n in range(3)],
        (0,),
        (3,),
    )
    content = lite.build(graph)
    # WHEN two of them become one new one
    rewriting = Rewriting(content)
    middle = rewriting.tensor(1, (1, 6), "new")
    rewriting.operators = [
        NewOperator([0], [middle], name="ABS"),
        NewOperator([middle], [3], old=0),
    ]
    made = rewriting.finish()
    # THEN no tensor is left over that the interpreter would give memory to
    tensors = read_tflite(made).main.tensors
    assert len(tensors) == 4
    assert sum(not tensor.is_constant for tensor in tensors) == 3
    values = np.linspace(-2, 3, 6, dtype="float32").reshape(1, 6)
    for interpreter in (Micro(made), Lite(made)):
        assert np.array_equal(interpreter([values])[0], -abs(values))


def test_other_subgraphs_stay(lite):
    branch = lite.G([lite.T((1, 6)), lite.T((1, 6))], [lite.Op("NEG", (0,), (1,))], (0,), (1,))
    content = lite.build(lite.dense(), branch)
    assert read_tflite(repeated(content).finish()).subgraphs == read_tflite(content).subgraphs


def test_equal_constants_are_one_tensor(lite):
    rewriting = repeated(lite.build(lite.dense()))
    assert rewriting.integers((1, 2)) == rewriting.integers([1, 2])
    assert rewriting.integers((1, 2)) != rewriting.integers((1, 2), (2, 1))


def test_constants_behind_the_flatbuffer_are_refused(lite):
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(lite.build(lite.dense())))
    model.buffers[1].data, model.buffers[1].offset, model.buffers[1].size = None, 64, 32
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    with pytest.raises(InputError) as caught:
        Rewriting(bytes(builder.Output()) + bytes(64))
    assert caught.value.code == "SNG575"


@pytest.mark.parametrize("content", [b"", b"no model", bytes(64)])
def test_what_is_no_model_is_refused(content):
    with pytest.raises(UnreadableProgramError):
        Rewriting(content)


def test_new_tables_lie_in_front_and_point_at_the_old_block():
    # GIVEN an old file, and a table of every kind of field
    old = bytes(range(64)) * 2
    root = Fields(
        {
            0: Number("b", -3),
            1: Number("Q", 1 << 40),
            3: text("häuser"),
            4: Vector([Fields({0: Number("i", 7)}), Fields({0: Number("i", 9)})]),
            5: integers((1, -2, 3)),
            6: Old(64),
            7: Fields({0: data(b"weights")}),
        }
    )
    # WHEN it is laid out
    made = lay_out(root, old)
    table = Buffer(made).root()
    # THEN every field reads back, and what must be aligned is
    assert table.number(0, struct.Struct("<b")) == -3
    assert table.number(1, UINT64) == 1 << 40
    assert not table.has(2)
    assert table.text(3) == "häuser"
    assert [entry.number(0, INT32) for entry in table.tables(4)] == [7, 9]
    assert table.numbers(5) == (1, -2, 3)
    assert table.table(7).bytes(0).tobytes() == b"weights"
    assert made.index(b"weights") % 16 == 0
    assert made.endswith(old)
    assert (len(made) - len(old)) % 64 == 0


def test_damaged_files_end_in_an_error_and_nothing_else(lite):
    # GIVEN a model with one byte changed, in many ways
    content = lite.build(lite.dense(quantised=True), metadata={"note": b"x"})
    draw = random.Random(1)  # noqa: S311 - the same bytes each time
    refused = 0
    for _ in range(300):
        place = draw.randrange(len(content))
        damaged = content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :]
        # WHEN it is rewritten THEN it works or is refused
        try:
            read_tflite(repeated(damaged).finish())
        except InputError:
            refused += 1
    assert refused
