"""Functions of every kind, and what they may be called with."""

import numpy as np
import pytest
import tensorflow as tf

from snugly.errors import UnknownDimensionError
from snugly.readers.dimensions import Dimensions
from snugly.readers.tf_function import as_spec, is_concrete

pytestmark = pytest.mark.tensorflow

FLOAT = 4


def double(x):
    return x * 2


@pytest.mark.parametrize(
    "example",
    [
        tf.TensorSpec((8, 16)),
        np.zeros((8, 16), np.float32),
        tf.zeros((8, 16)),
        tf.TensorSpec((None, 16)),
        tf.TensorSpec((None, None)),
    ],
    ids=["spec", "array", "tensor", "open batch", "open batch and sequence"],
)
@pytest.mark.parametrize("function", [double, tf.function(double)], ids=["plain", "tf.function"])
def test_specs_arrays_and_tensors_say_the_same(read, look, function, example):
    seen = look(read(function, example, batch_size=8, named={"sequence": 16}))
    assert (seen.inputs, seen.outputs) == (8 * 16 * FLOAT, 8 * 16 * FLOAT)


def test_a_signature_is_enough(read, look):
    signed = tf.function(double, input_signature=[tf.TensorSpec((None, 16), name="rows")])
    assert look(read(signed, batch_size=4)).inputs == 4 * 16 * FLOAT
    assert look(read(signed, tf.TensorSpec((5, 16)))).outputs == 5 * 16 * FLOAT
    with pytest.raises(UnknownDimensionError, match="'rows' leaves it open"):
        read(signed)


def test_a_concrete_function_is_read_as_it_is(read, look):
    concrete = tf.function(double).get_concrete_function(tf.TensorSpec((8, 16)))
    assert is_concrete(concrete)
    assert not is_concrete(tf.function(double))
    assert look(read(concrete)).inputs == 8 * 16 * FLOAT


def test_a_concrete_function_may_leave_dimensions_open(read, look):
    concrete = tf.function(double).get_concrete_function(tf.TensorSpec((None, 16), name="rows"))
    assert look(read(concrete, batch_size=3)).outputs == 3 * 16 * FLOAT
    with pytest.raises(UnknownDimensionError, match="'rows' leaves it open"):
        read(concrete)


def test_a_function_without_arguments(read, look):
    variable = tf.Variable(tf.ones((8, 16)))
    seen = look(read(lambda: variable @ tf.transpose(variable)))
    assert (seen.inputs, seen.outputs) == (0, 8 * 8 * FLOAT)
    assert seen.resident == 8 * 16 * FLOAT


def test_missing_arguments_are_asked_for(read):
    for function in (double, tf.function(double)):
        with pytest.raises(UnknownDimensionError) as caught:
            read(function)
        assert caught.value.message == "the function 'double' does not say what it takes"
        assert "tf.TensorSpec((64, 64))" in caught.value.hint


def test_structures_and_plain_values_are_passed_on(read, look):
    def function(pair, scale, options):
        return pair["a"] @ pair["b"] * scale if options is None else pair["a"]

    pair = {"a": tf.TensorSpec((4, 8)), "b": tf.TensorSpec((8, 2))}
    seen = look(read(function, pair, 3.0, None))
    assert seen.inputs == (4 * 8 + 8 * 2) * FLOAT
    assert seen.outputs == 4 * 2 * FLOAT


def test_an_object_with_call_is_a_function(read, look):
    class Scaler:
        def __call__(self, x):
            return x * 3

    assert look(read(Scaler(), tf.TensorSpec((4,)))).outputs == 4 * FLOAT


def test_a_variable_stays_a_variable():
    variable = tf.Variable(1.0)
    assert as_spec(variable, "x", Dimensions()) is variable
    assert as_spec(7, "x", Dimensions()) == 7
    assert as_spec("text", "x", Dimensions()) == "text"


def test_a_function_that_makes_variables_takes_no_memory_for_them(read, look):
    made = []

    @tf.function
    def lazy(x):
        if not made:
            made.append(tf.Variable(tf.zeros((16, 16))))
        return x @ made[0]

    assert look(read(lazy, tf.TensorSpec((4, 16)))).outputs == 4 * 16 * FLOAT
