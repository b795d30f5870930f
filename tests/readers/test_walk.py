"""What single nodes become: variables, constants, kernels with hidden outputs, absorbed ones."""

import pytest
import tensorflow as tf

pytestmark = pytest.mark.tensorflow

FLOAT = 4
SQUARE = tf.TensorSpec((64, 64))
SQUARE_BYTES = 64 * 64 * FLOAT
IMAGE = tf.TensorSpec((1, 16, 16, 4))
IMAGE_BYTES = 16 * 16 * 4 * FLOAT


def names_of_resident(reading):
    graph = reading.graph
    return {r.name: graph.tensors[r.tensor].bytes for r in graph.resident if r.name}


def test_a_captured_variable_is_resident_and_not_an_input(read, look):
    variable = tf.Variable(tf.zeros((64, 64)))
    reading = read(lambda x: x @ variable, SQUARE)
    assert look(reading).resident == SQUARE_BYTES
    assert look(reading).inputs == SQUARE_BYTES
    read_variable = reading.graph.operations[0]
    assert (read_variable.type, read_variable.access) == ("ReadVariableOp", "read")


def test_updates_say_which_variable_they_change(read):
    variable = tf.Variable(tf.zeros((64, 64)))

    def step(x):
        variable.assign_add(x)
        variable.assign(x @ x)

    operations = {op.type: op for op in read(step, SQUARE).graph.operations}
    assert operations["AssignAddVariableOp"].access == "update"
    assert operations["AssignVariableOp"].access == "assign"
    assert operations["AssignVariableOp"].variables == operations["AssignAddVariableOp"].variables
    # The assignment was written after the addition and must wait for it.
    order = [op.type for op in read(step, SQUARE).graph.operations]
    assert order.index("AssignAddVariableOp") in operations["AssignVariableOp"].after


def test_what_is_made_of_constants_is_made_once_and_kept_if_read(read, look):
    def function(x):
        table = tf.eye(64) @ tf.ones((64, 64))
        tf.eye(512) @ tf.ones((512, 512))  # nobody reads this
        return x + table

    seen = look(read(function, SQUARE))
    assert seen.types == ["AddV2"]
    assert seen.resident == SQUARE_BYTES


def test_a_result_made_of_constants_is_still_a_result(read, look):
    reading = read(lambda x: (x + 1, tf.eye(64) @ tf.ones((64, 64))), SQUARE)
    assert look(reading).outputs == 2 * SQUARE_BYTES
    kept = {resident.tensor for resident in reading.graph.resident}
    made = {tensor for op in reading.graph.operations for tensor in op.outputs}
    assert set(reading.graph.outputs) <= kept | made


def test_large_constants_are_not_folded(read, look):
    def count(x):
        return x + tf.cast(tf.range(x.shape[0]), tf.float32)

    few, many = 1 << 20, 1 << 22  # 4 and 16 MiB; TensorFlow folds up to 10
    kept = look(read(count, tf.TensorSpec((few,)))).resident
    assert few * FLOAT <= kept < few * FLOAT + 1024  # and some scalars
    seen = look(read(count, tf.TensorSpec((many,))))
    assert seen.resident < 1024
    assert seen.types[:2] == ["Range", "Cast"]


def test_pooling_with_onednn_makes_a_map_that_its_gradient_reads(read, look):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.nn.max_pool2d(x, 2, 2, "VALID") ** 2)
        return tape.gradient(y, x)

    pooled = IMAGE_BYTES // 4
    reading = read(gradient, IMAGE)
    operations = {op.type: op for op in reading.graph.operations}
    output, hidden = operations["MaxPool"].outputs
    assert reading.graph.tensors[output].bytes == pooled
    assert reading.graph.tensors[hidden].bytes == pooled // FLOAT  # a byte for each maximum
    assert hidden in operations["MaxPoolGrad"].inputs
    # TensorFlow's own kernel makes no such map.
    assert ("MaxPool", (pooled,)) in look(read(gradient, IMAGE, onednn=False)).made


def test_a_pad_before_a_convolution_is_absorbed_by_it(read, look):
    def convolve(x, weights):
        return tf.nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), weights, 1, "VALID")

    def convolve_and_keep(x, weights):
        padded = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        return tf.nn.conv2d(padded, weights, 1, "VALID"), padded

    weights = tf.TensorSpec((3, 3, 4, 4))
    assert look(read(convolve, IMAGE, weights)).types == ["Conv2D"]
    assert look(read(convolve, IMAGE, weights, onednn=False)).types == ["Pad", "Conv2D"]
    # Somebody else reads the padded image, so it has to be made.
    assert "Pad" in look(read(convolve_and_keep, IMAGE, weights)).types


def test_a_new_shape_is_the_same_buffer(read, look):
    reading = read(lambda x: tf.reshape(x @ x, (16, 256)), SQUARE)
    assert look(reading).types == ["MatMul"]
    assert look(reading).outputs == SQUARE_BYTES


def test_shapes_are_known_and_computed_with(read, look):
    def function(x):
        rows = tf.shape(x)[0] // 4
        return tf.zeros((rows, 3)) + x[0, 0]

    assert look(read(function, SQUARE)).outputs == 16 * 3 * FLOAT


def test_bounds_are_taken_and_said_where_the_data_decides(read, look):
    reading = read(lambda x: tf.boolean_mask(x, x > 0), SQUARE)
    assert look(reading).outputs == SQUARE_BYTES  # all of it may pass
    assert any("Where makes at most what was predicted" in note for note in reading.notes)
    reading = read(lambda x: tf.unique(tf.reshape(x, [-1]))[0], SQUARE)
    assert look(reading).outputs == SQUARE_BYTES
    boxes = (tf.TensorSpec((30, 4)), tf.TensorSpec((30,)))
    reading = read(lambda b, s: tf.image.non_max_suppression(b, s, 10), *boxes)
    assert look(reading).outputs == 10 * 4  # int32 indices
    parts = read(lambda x: tf.dynamic_partition(x, tf.zeros(64, tf.int32), 2), SQUARE)
    assert look(parts).outputs == 2 * SQUARE_BYTES


def test_a_bound_can_be_replaced_by_what_the_user_knows(read, look):
    reading = read(lambda x: tf.boolean_mask(x, x > 0), SQUARE, named={"Where": 100})
    assert look(reading).outputs == 100 * FLOAT
    assert reading.notes == []


def test_sparse_updates_make_a_variable_copy_on_read(read):
    table = tf.Variable(tf.zeros((100, 8)))

    def step(rows, values):
        total = tf.reduce_sum(table)
        table.scatter_nd_update(rows, values)
        return total

    reading = read(step, tf.TensorSpec((5, 1), tf.int32), tf.TensorSpec((5, 8)))
    update = next(op for op in reading.graph.operations if "Scatter" in op.type)
    assert update.variables == ()  # it is changed where it is


def test_who_waits_for_a_renaming_waits_for_what_is_renamed(read):
    def function(x):
        renamed = tf.reshape(x @ x, [-1])
        with tf.control_dependencies([renamed]):
            later = tf.reshape(tf.identity(x), [-1])
        return renamed, tf.tanh(later)

    operations = read(function, SQUARE).graph.operations
    order = [operation.type for operation in operations]
    assert order.index("MatMul") in operations[order.index("Tanh")].after
