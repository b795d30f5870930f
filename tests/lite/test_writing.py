"""Rewritten files: the same model but for the plan and the order, and the runtimes read them."""

import struct

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tests.lite import micro_models as micro

from snugly.errors import InputError
from snugly.lite import rewriting_tables, writing
from snugly.lite.writing import write_plan
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.constants import Constants


def branches(plan=None):
    """Two convolutions of one input and their sum; five tensors are constants."""
    model = micro.Model()
    given = model.tensor((1, 6, 6, 4))
    one, other = model.convolution(given, 4, 3), model.convolution(given, 4, 1)
    output = model.add(one, other)
    return model.finish((given,), (output,), plan)


def parsed(source):
    return schema.ModelT.InitFromPackedBuf(bytearray(source), 0)


def test_the_plan_is_what_the_schema_reads():
    source = branches()
    model = read_tflite(source)
    offsets = list(range(0, 16 * len(model.main.tensors), 16))
    written = write_plan(source, model, offsets)
    assert read_tflite(written).offline_offsets == tuple(offsets)
    after = parsed(written)
    (entry,) = after.metadata
    assert entry.name == b"OfflineMemoryAllocation"
    numbers = struct.unpack(f"<{3 + len(offsets)}i", bytes(after.buffers[entry.buffer].data))
    assert numbers == (1, 1, len(offsets), *offsets)


def test_everything_else_is_the_same():
    source = branches()
    written = write_plan(source, read_tflite(source), [-1] * 8, {0: (1, 0, 2)})
    before, after = parsed(source), parsed(written)
    for one, other in zip(before.buffers, after.buffers, strict=False):
        assert np.array_equal(one.data, other.data)
    first, second = before.subgraphs[0], after.subgraphs[0]
    assert [vars(op)["inputs"].tolist() for op in second.operators] == [
        first.operators[index].inputs.tolist() for index in (1, 0, 2)
    ]
    for one, other in zip(first.tensors, second.tensors, strict=True):
        assert (one.name, one.shape.tolist(), one.type, one.buffer) == (
            other.name,
            other.shape.tolist(),
            other.type,
            other.buffer,
        )
        assert np.array_equal(
            one.quantization and one.quantization.scale,
            other.quantization and (other.quantization.scale),
        )
    assert len(after.buffers) == len(before.buffers) + 1
    assert len(written) - len(source) < 600


def test_both_runtimes_give_the_same_answers_in_another_order():
    from ai_edge_litert.interpreter import Interpreter

    source = branches()
    written = write_plan(source, read_tflite(source), None, {0: (1, 0, 2)})
    assert micro.run(written) == micro.run(source)
    values = np.random.default_rng(0).integers(-128, 128, (1, 6, 6, 4)).astype(np.int8)
    answers = []
    for content in (source, written):
        interpreter = Interpreter(model_content=content)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
        interpreter.invoke()
        answers.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    assert np.array_equal(*answers)


def test_a_plan_is_replaced_in_its_buffer_or_removed():
    # GIVEN a file with a plan
    source = branches([0, -1, -1, 16, -1, -1, 32, 48])
    model = read_tflite(source)
    # WHEN another is written THEN it takes the buffer of the old one
    written = write_plan(source, model, [0] * 8)
    assert read_tflite(written).offline_offsets == (0,) * 8
    assert len(parsed(written).buffers) == len(parsed(source).buffers)
    assert len(parsed(written).metadata) == 1
    # WHEN none is written THEN there is none
    bare = write_plan(written, read_tflite(written), None)
    assert read_tflite(bare).offline_offsets is None
    assert parsed(bare).metadata is None
    assert micro.run(bare) == micro.run(branches())


def test_other_metadata_stays(lite):
    source = lite.build(lite.dense(), metadata={"mine": b"abcd"})
    written = write_plan(source, read_tflite(source), [0, -1, -1, 32])
    assert set(read_tflite(written).metadata) == {"mine", "OfflineMemoryAllocation"}
    after = parsed(written)
    kept = next(entry for entry in after.metadata if entry.name == b"mine")
    assert bytes(after.buffers[kept.buffer].data) == b"abcd"


def test_a_buffer_that_somebody_else_uses_is_not_replaced(lite):
    # GIVEN a plan whose buffer another entry of the metadata shares
    graph = lite.dense()
    plan = struct.pack("<7i", 1, 1, 4, 64, -1, -1, 0)
    source = lite.build(graph, metadata={"OfflineMemoryAllocation": plan, "mine": plan})
    model = schema.ModelT.InitFromPackedBuf(bytearray(source), 0)
    model.metadata[1].buffer = model.metadata[0].buffer
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    shared = bytes(builder.Output())
    # WHEN a plan is written THEN the other entry still has what it had
    written = parsed(write_plan(shared, read_tflite(shared), [0, -1, -1, 32]))
    kept = next(entry for entry in written.metadata if entry.name == b"mine")
    assert bytes(written.buffers[kept.buffer].data) == plan


def test_small_constants_are_read_and_others_are_not():
    model = micro.Model()
    numbers = model.integers([[1, 2], [3, 4]])
    wide = model.tensor((2,), "INT64", np.array([5, -6], np.int64))
    values = model.tensor((2,), "FLOAT32", np.array([1, 2], np.float32))
    computed = model.tensor((2,), "INT32")
    long = model.integers(list(range(65)))
    source = model.finish((computed,), (computed,))
    found = [Constants(source).integers(one) for one in read_tflite(source).main.tensors]
    assert [numbers, wide, values, computed, long] == [0, 1, 2, 3, 4]
    assert found == [(1, 2, 3, 4), (5, -6), None, None, None]


def test_constants_after_the_flatbuffer_are_refused():
    model = schema.ModelT.InitFromPackedBuf(bytearray(branches()), 0)
    model.buffers[1].data, model.buffers[1].offset, model.buffers[1].size = None, 8, 4
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    source = bytes(builder.Output())
    with pytest.raises(InputError, match="after the flatbuffer") as caught:
        write_plan(source, read_tflite(source), None)
    assert caught.value.code == "SNG568"


def test_fields_of_a_later_schema_are_refused_not_lost(monkeypatch):
    monkeypatch.setitem(rewriting_tables.TABLES, "Model", (1, {0: "I"}))
    source = branches()
    with pytest.raises(InputError, match="later schema"):
        write_plan(source, read_tflite(source), None)


def test_a_file_that_would_be_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(writing, "LARGEST_FILE", 100)
    source = branches()
    with pytest.raises(InputError, match="2 GiB"):
        write_plan(source, read_tflite(source), None)
