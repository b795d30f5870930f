"""Who decides that XLA compiles a whole step, and what is said about it."""

import keras
import pytest
import tensorflow as tf

from snugly.readers import jit
from snugly.readers.dimensions import Dimensions
from snugly.readers.node import Machine
from snugly.readers.read import read_program

pytestmark = pytest.mark.tensorflow

CPU = Machine("cpu", onednn=True, threads=2)
GPU = Machine("gpu", onednn=False, threads=2)


def dense(**how):
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(4)])
    model.compile(optimizer="sgd", loss="mse", **how)
    return model


def recurrent(layer):
    model = keras.Sequential([keras.Input((10, 8)), layer, keras.layers.Dense(4)])
    model.compile(optimizer="sgd", loss="mse")
    return model


def read(program, machine, jit_compile=None, *example):
    return read_program(
        program,
        example,
        dimensions=Dimensions(8),
        training=isinstance(program, keras.Model),
        jit_compile=jit_compile,
        machine=machine,
    )


def is_whole(reading):
    return [operation.type for operation in reading.graph.operations] == ["XlaLaunch"]


def test_on_a_processor_keras_compiles_only_when_told():
    assert not is_whole(read(dense(), CPU))
    assert is_whole(read(dense(jit_compile=True), CPU))
    assert is_whole(read(dense(), CPU, True))
    assert not is_whole(read(dense(jit_compile=True), CPU, False))


def test_on_a_gpu_keras_compiles_unless_told_otherwise():
    reading = read(dense(), GPU)
    assert reading.on_gpu
    assert reading.compiled_elsewhere
    assert not is_whole(reading)
    assert jit.ASSUMED in reading.notes
    assert jit.STANDS_IN in reading.notes
    assert not read(dense(), GPU, False).compiled_elsewhere


def test_on_the_gpu_itself_xla_is_asked(monkeypatch):
    monkeypatch.setattr(jit, "has_gpu", lambda: True)
    assert jit.compiling(dense(), True, GPU) == jit.Compiling(whole=True)
    assert not jit.compiling(dense(), None, GPU).whole, "the model was compiled without"


def test_what_was_asked_for_is_not_called_assumed():
    assert read(dense(), GPU, True).notes == [jit.STANDS_IN]


def test_eager_models_are_not_compiled():
    assert not jit.compiling(dense(run_eagerly=True), None, GPU).whole


def test_a_layer_that_cudnn_computes_is_not_compiled():
    model = recurrent(keras.layers.LSTM(6))
    reading = read(model, GPU, True)
    assert "CudnnRNNV3" in [operation.type for operation in reading.graph.operations]
    assert jit.UNSUPPORTED in reading.notes
    assert read(model, GPU).notes == []
    assert all(layer.supports_jit for layer in model.layers), "the model was changed"


def test_layers_that_say_no_are_believed():
    model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.RandomRotation(0.1)])
    model.add(keras.layers.Flatten())
    model.compile(optimizer="sgd", loss="mse")
    decision = jit.compiling(model, True, CPU)
    assert not decision.whole
    assert decision.notes == (jit.UNSUPPORTED,)


def test_the_gradient_of_a_loop_compiles():
    assert is_whole(read(recurrent(keras.layers.SimpleRNN(6)), CPU, True))


def test_a_function_says_itself_whether_it_is_compiled():
    square = tf.TensorSpec((8, 8))
    assert is_whole(read(tf.function(lambda x: x @ x + x, jit_compile=True), CPU, None, square))
    assert not is_whole(read(tf.function(lambda x: x @ x + x), CPU, None, square))
    assert is_whole(read(lambda x: x @ x + x, CPU, True, square))
