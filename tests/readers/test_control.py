"""Control flow: loops turn as often as they will, branches are taken."""

import pytest
import tensorflow as tf

from snugly.errors import UnpredictableProgramError
from snugly.readers import slots

pytestmark = pytest.mark.tensorflow

SQUARE = tf.TensorSpec((32, 32))


def count(look, reading, operator):
    return look(reading).types.count(operator)


def three_times(x):
    for _ in tf.range(3):
        x = tf.sin(x @ x)
    return x


def test_a_loop_turns_as_often_as_it_says(read, look):
    reading = read(three_times, SQUARE)
    assert count(look, reading, "MatMul") == 3
    assert count(look, reading, "Sin") == 3
    assert reading.notes == []
    # Each turn waits for the one before through what it reads.
    made = {t: op for op in reading.graph.operations for t in op.outputs}
    products = [op for op in reading.graph.operations if op.type == "MatMul"]
    assert [made[p.inputs[0]].type for p in products[1:]] == ["Sin", "Sin"]
    assert products[0].inputs[0] in reading.graph.inputs
    assert reading.graph.outputs[0] in made


def test_a_loop_that_never_turns_hands_on_its_input(read, look):
    def never(x):
        i = tf.constant(5)
        while i < 5:
            x, i = x @ x, i + 1
        return x

    assert count(look, read(never, SQUARE), "MatMul") == 0


def test_loops_in_loops(read, look):
    def nested(x):
        for _ in tf.range(2):
            for _ in tf.range(3):
                x = tf.sin(x @ x)
            x = tf.exp(x)
        return x

    reading = read(nested, SQUARE)
    assert count(look, reading, "MatMul") == 6
    assert count(look, reading, "Exp") == 2


def test_a_loop_that_only_the_data_ends_is_walked_twice_and_said(read, look):
    def until(x):
        while tf.reduce_sum(x) < 3:
            x = tf.sin(x @ x)
        return x

    reading = read(until, SQUARE)
    assert count(look, reading, "MatMul") == 2
    assert count(look, reading, "Sum") == 3  # the condition is asked once more than it holds
    assert len(reading.notes) == 1
    assert "turns as often as its data says" in reading.notes[0]


def test_only_so_many_turns_are_under_way(read):
    def independent(x):
        rows = tf.TensorArray(tf.float32, 6)
        for i in tf.range(6):
            tf.autograph.experimental.set_loop_options(parallel_iterations=2)
            rows = rows.write(i, x @ x)
        return rows.stack()

    gates = [op for op in read(independent, SQUARE).graph.operations if op.type == "NoOp"]
    assert gates
    assert all(gate.after for gate in gates)


def test_a_loop_too_long_to_walk_is_refused(read, monkeypatch):
    def long(x):
        for _ in tf.range(10_000_000):
            x = tf.sin(x @ x)
        return x

    monkeypatch.setattr(slots, "MOST_OPERATIONS", 300)  # else this test would take minutes
    with pytest.raises(UnpredictableProgramError, match="has not ended after") as caught:
        read(long, SQUARE)
    assert "fewer turns" in caught.value.hint


def test_a_condition_that_follows_from_shapes_is_decided(read, look):
    def by_shape(x):
        return tf.cond(tf.shape(x)[0] > 16, lambda: tf.exp(x), lambda: tf.sin(x @ x))

    reading = read(by_shape, SQUARE)
    assert look(reading).types == ["Exp"]
    assert reading.notes == []
    assert "MatMul" in look(read(by_shape, tf.TensorSpec((8, 8)))).types


def test_a_condition_that_only_the_data_decides_takes_the_larger_side(read, look):
    def larger_if_true(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x @ x) @ x, lambda: tf.exp(x))

    def larger_if_false(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: tf.sin(x @ x) @ x)

    for function in (larger_if_true, larger_if_false):
        reading = read(function, SQUARE)
        assert count(look, reading, "MatMul") == 2
        assert count(look, reading, "Exp") == 0
        assert any("depends on the data; the larger one" in note for note in reading.notes)
        # Nothing on that side begins before the condition is known.
        operations = reading.graph.operations
        condition = next(i for i, op in enumerate(operations) if op.type == "Greater")
        assert any(condition in op.after for op in operations)


def test_every_value_is_there_before_it_is_read(read):
    # GIVEN programs with all kinds of control flow, WHEN they are read
    for function in (three_times, lambda x: tf.cond(x[0, 0] > 0, lambda: x, lambda: x @ x)):
        graph = read(function, SQUARE).graph
        known = {resident.tensor for resident in graph.resident} | set(graph.inputs)
        # THEN operations come in an order in which they could run
        for index, operation in enumerate(graph.operations):
            assert set(operation.inputs) <= known
            assert all(wait < index for wait in operation.after)
            known.update(operation.outputs)
