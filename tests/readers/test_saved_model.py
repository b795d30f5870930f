"""SavedModel folders, read from their graph alone."""

import os
import shutil

import keras
import pytest
import tensorflow as tf

from snugly.errors import InputError, UnknownDimensionError, UnreadableProgramError
from snugly.readers.saved_model import LARGEST_FILE

pytestmark = pytest.mark.tensorflow

FLOAT = 4


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model = keras.Sequential([keras.Input((4,), name="x"), keras.layers.Dense(3)])
    folder = tmp_path_factory.mktemp("exported") / "model"
    model.export(folder, verbose=False)
    return folder


@pytest.fixture
def folder(exported, tmp_path):
    """A copy that may be damaged."""
    return shutil.copytree(exported, tmp_path / "model")


def change(folder):
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((folder / "saved_model.pb").read_bytes())
    yield saved.meta_graphs[0]
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString())


def test_an_exported_model_is_read(read, look, folder):
    shutil.rmtree(folder / "variables")  # which are not needed
    reading = read(folder, batch_size=8)
    seen = look(reading)
    assert reading.name == "model"
    assert (seen.inputs, seen.outputs) == (8 * 4 * FLOAT, 8 * 3 * FLOAT)
    assert seen.resident == (4 * 3 + 3) * FLOAT
    assert "_FusedMatMul" in seen.types or "MatMul" in seen.types
    with pytest.raises(UnknownDimensionError):
        read(str(folder))


def test_a_current_folder_has_a_name(read, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert read(".", batch_size=1).name == "model"


def test_a_module_with_a_signature_is_read(read, look, tmp_path):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.Variable(tf.ones((16, 16)))

        @tf.function(input_signature=[tf.TensorSpec((None, 16), name="rows")])
        def other(self, rows):
            return rows @ self.table

        @tf.function(input_signature=[tf.TensorSpec((), name="scale")])
        def scaled(self, scale):
            return self.table * scale

    module = Module()
    tf.saved_model.save(module, tmp_path / "m", signatures={"other": module.other})
    seen = look(read(tmp_path / "m", batch_size=2))
    assert (seen.inputs, seen.resident) == (2 * 16 * FLOAT, 16 * 16 * FLOAT)
    tf.saved_model.save(module, tmp_path / "s", signatures=module.scaled)
    assert look(read(tmp_path / "s")).inputs == FLOAT  # a scalar has no open dimension


def test_training_is_not_in_a_saved_model(read, folder):
    with pytest.raises(InputError) as caught:
        read(folder, batch_size=1, training=True)
    assert caught.value.message == "model is a SavedModel, which holds no training step"
    assert "script.py:name" in caught.value.hint


def test_a_folder_of_something_else_is_refused(read, tmp_path):
    with pytest.raises(UnreadableProgramError, match=r"holds no saved_model\.pb") as caught:
        read(tmp_path)
    assert "model.export()" in caught.value.hint


@pytest.mark.parametrize("content", [b"not a protobuf", b"\xff" * 100, b""])
def test_a_damaged_graph_is_refused(read, folder, content):
    (folder / "saved_model.pb").write_bytes(content)
    with pytest.raises(UnreadableProgramError) as caught:
        read(folder, batch_size=1)
    assert "damaged" in caught.value.message or "holds no graph" in caught.value.message
    assert caught.value.hint == "export the model again"


def test_half_a_graph_is_refused(read, folder):
    content = (folder / "saved_model.pb").read_bytes()
    (folder / "saved_model.pb").write_bytes(content[: len(content) // 2])
    with pytest.raises(UnreadableProgramError, match="damaged"):
        read(folder, batch_size=1)


def test_a_file_larger_than_a_protobuf_is_not_read(read, tmp_path):
    (tmp_path / "saved_model.pb").touch()
    os.truncate(tmp_path / "saved_model.pb", LARGEST_FILE + 1)  # holes, which take no disk
    with pytest.raises(UnreadableProgramError, match="larger than a protobuf can be"):
        read(tmp_path)


def test_operators_of_another_library_are_named(read, folder):
    for graph in change(folder):
        graph.graph_def.node.add(op="FancyCustomOp", name="fancy")
        graph.graph_def.library.function[0].node_def.add(op="AnotherCustomOp", name="another")
    with pytest.raises(UnreadableProgramError) as caught:
        read(folder, batch_size=1)
    assert "AnotherCustomOp, FancyCustomOp" in caught.value.message
    assert "tf.load_op_library" in caught.value.hint


def test_a_model_without_a_signature_is_refused(read, folder):
    for graph in change(folder):
        for name in list(graph.signature_def):
            if name != "__saved_model_init_op":
                del graph.signature_def[name]
    with pytest.raises(InputError, match="has no signature to predict") as caught:
        read(folder, batch_size=1)
    assert "signatures=" in caught.value.hint
