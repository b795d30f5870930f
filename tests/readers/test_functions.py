"""Functions that were not inlined, and control flow that was not lowered."""

import pytest
import tensorflow as tf

pytestmark = pytest.mark.tensorflow

FLOAT = 4
SQUARE = tf.TensorSpec((32, 32))
SQUARE_BYTES = 32 * 32 * FLOAT


def count(look, reading, operator):
    return look(reading).types.count(operator)


def test_functions_that_are_not_inlined_are_entered(read, look):
    @tf.function(experimental_attributes={"_noinline": True})
    def apart(x):
        return tf.sin(x @ x)

    variable = tf.Variable(tf.ones((32, 32)))

    @tf.function(experimental_attributes={"_noinline": True})
    def with_variable(x):
        return x @ variable

    reading = read(lambda x: with_variable(apart(apart(x))), SQUARE)
    assert count(look, reading, "MatMul") == 3
    assert count(look, reading, "Sin") == 2
    assert look(reading).resident == SQUARE_BYTES


def test_control_flow_that_was_not_lowered_is_walked_too(read, look):
    @tf.function(experimental_attributes={"_noinline": True})
    def loop(x, turns):
        for _ in tf.range(turns):
            x = tf.sin(x @ x)
        return tf.cond(turns > 2, lambda: tf.exp(x), lambda: x)

    known = read(lambda x: loop(x, tf.constant(3)), SQUARE)
    assert count(look, known, "MatMul") == 3
    assert known.notes == []
    unknown = read(loop, SQUARE, tf.TensorSpec((), tf.int32))
    assert count(look, unknown, "MatMul") == 2
    assert len(unknown.notes) == 2


def test_a_case_takes_the_branch_it_is_told(read, look):
    def switch(x, which):
        branches = [lambda: tf.exp(x), lambda: tf.sin(x), lambda: tf.cos(x) @ x]
        return tf.switch_case(which, branches)

    assert look(read(lambda x: switch(x, tf.constant(1)), SQUARE)).types == ["Sin"]
    assert (
        "MatMul" in look(read(lambda x: switch(x, tf.constant(7)), SQUARE)).types
    )  # out of range: the last
    reading = read(switch, SQUARE, tf.TensorSpec((), tf.int32))
    assert "MatMul" in look(reading).types  # the largest
    assert any("depends on the data" in note for note in reading.notes)


STEP = tf.TensorSpec((), tf.int32)


def concrete(function, *specs):
    return tf.function(function).get_concrete_function(*specs)


def test_raw_loops_turn_as_often_as_they_say(read, look):
    def loop(x, limit):
        condition = concrete(lambda i, limit, _x: i < limit, STEP, STEP, SQUARE)
        body = concrete(lambda i, limit, x: (i + 1, limit, tf.sin(x)), STEP, STEP, SQUARE)
        start = [tf.constant(0), limit, x]
        return tf.raw_ops.StatelessWhile(input=start, cond=condition, body=body)[2]

    known = read(lambda x: loop(x, tf.constant(3)), SQUARE)
    assert count(look, known, "Sin") == 3
    assert known.notes == []
    unknown = read(loop, SQUARE, STEP)
    assert count(look, unknown, "Sin") == 2
    assert "turns as often as its data says" in unknown.notes[0]


def test_raw_branches_are_taken(read, look):
    def branch(x, condition):
        return tf.raw_ops.StatelessIf(
            cond=condition,
            input=[x],
            Tout=[tf.float32],
            then_branch=concrete(lambda x: tf.sin(x @ x), SQUARE),
            else_branch=concrete(tf.exp, SQUARE),
        )[0]

    def by_shape(x):
        return branch(x, tf.shape(x)[0] > 100)

    assert look(read(by_shape, SQUARE)).types == ["Exp"]
    reading = read(branch, SQUARE, tf.TensorSpec((), tf.bool))
    assert look(reading).types == ["MatMul", "Sin"]  # the larger one
    assert "depends on the data" in reading.notes[0]
