"""TensorLists: who holds what, for how long."""

import pytest
import tensorflow as tf

pytestmark = pytest.mark.tensorflow

FLOAT = 4
SQUARE = tf.TensorSpec((32, 32))
SQUARE_BYTES = 32 * 32 * FLOAT


def test_an_array_holds_what_was_written_into_it(read, look):
    def collect(x):
        rows = tf.TensorArray(tf.float32, 4)
        for i in tf.range(4):
            rows = rows.write(i, x * tf.cast(i, tf.float32))
        return rows.stack()

    reading = read(collect, SQUARE)
    graph = reading.graph
    assert look(reading).outputs == 4 * SQUARE_BYTES
    lists = [op for op in graph.operations if op.type == "TensorListSetItem"]
    assert len(lists) == 4
    # The last list keeps all four items alive: its own, and those of the list it was made from.
    held = set()
    waiting = [lists[-1].outputs[0]]
    while waiting:
        tensor = waiting.pop()
        held.add(tensor)
        waiting.extend(graph.tensors[tensor].holds)
    assert sum(graph.tensors[tensor].bytes == SQUARE_BYTES for tensor in held) == 4


def test_items_are_read_from_an_array_without_a_copy(read):
    def scatter_and_sum(x):
        rows = tf.TensorArray(tf.float32, 32).unstack(x)
        total = tf.zeros(32)
        for i in tf.range(32):
            total += rows.read(i)
        return total

    graph = read(scatter_and_sum, SQUARE).graph
    spread = next(op for op in graph.operations if op.type == "TensorListFromTensor")
    reads = [op for op in graph.operations if op.type == "TensorListGetItem"]
    assert len(reads) == 32
    # Taken apart, every row is a copy; read back, it is that copy.
    assert [graph.tensors[tensor].bytes for tensor in spread.outputs[:-1]] == [32 * FLOAT] * 32
    assert [op.aliases[0] for op in reads] == list(spread.outputs[:-1])


def test_the_gradient_of_a_loop_keeps_what_every_turn_made(read, look):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(3):
                y = tf.sin(y @ y)
        return tape.gradient(y, x)

    reading = read(gradient, SQUARE)
    seen = look(reading)
    assert seen.types.count("MatMul") == 3 + 2 * 3
    # One list for each thing the backward pass needs of a turn, pushed to and popped from.
    assert seen.types.count("TensorListPushBack") == seen.types.count("TensorListPopBack") > 0
    assert seen.outputs == SQUARE_BYTES
    assert reading.notes == []


def test_places_nobody_wrote_are_made_when_read(read):
    def sparse(x):
        rows = tf.TensorArray(tf.float32, 3, element_shape=(32, 32), clear_after_read=False)
        rows = rows.write(1, x)
        return rows.read(0) + rows.read(1)

    graph = read(sparse, SQUARE).graph
    first, second = (op for op in graph.operations if op.type == "TensorListGetItem")
    assert graph.tensors[first.outputs[0]].bytes == SQUARE_BYTES  # zeros
    assert graph.tensors[second.outputs[0]].bytes == 0  # the item itself
    assert second.aliases[0] in graph.inputs


def test_a_list_that_claims_to_be_endless_is_not_made(read):
    def huge(x):
        # The most that fits: TensorFlow counts in int32, and 1 << 40 would wrap around to none.
        rows = tf.TensorArray(tf.float32, (1 << 31) - 1, element_shape=(32, 32))
        return rows.write(1, x).read(1)

    assert read(huge, SQUARE).graph.operations


def test_folded_values_that_go_into_a_list_are_kept(read):
    def function(x):
        rows = tf.TensorArray(tf.float32, 2).unstack(tf.eye(2) @ tf.ones((2, 32)))
        return rows.read(0) + x

    graph = read(function, SQUARE).graph
    kept = {resident.tensor for resident in graph.resident} | set(graph.inputs)
    for operation in graph.operations:
        assert set(operation.inputs) <= kept
        kept.update(operation.outputs)


def test_the_gradient_of_a_scan_adds_lists_of_new_items(read, look):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.scan(lambda a, b: tf.sin(a * b), x)
        return tape.gradient(y, x)

    reading = read(gradient, tf.TensorSpec((4, 8)))
    graph = reading.graph
    assert look(reading).outputs == 4 * 8 * FLOAT
    sums = [op for op in graph.operations if op.type in {"AddN", "ZerosLike"}]
    made_lists = [op for op in sums if graph.tensors[op.outputs[-1]].holds]
    assert made_lists
    for operation in made_lists:
        *items, whole = operation.outputs
        assert graph.tensors[whole].holds == tuple(items)
        assert {graph.tensors[item].bytes for item in items} == {8 * FLOAT}
    assert reading.notes == []
