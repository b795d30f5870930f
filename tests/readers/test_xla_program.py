"""Functions that XLA compiles: one kernel each, with what XLA itself says of its buffers."""

import pytest
import tensorflow as tf

from snugly.errors import UnpredictableProgramError
from snugly.readers.xla_program import assigned

pytestmark = pytest.mark.tensorflow

FLOAT = 4
SQUARE = tf.TensorSpec((64, 64))
SQUARE_BYTES = 64 * 64 * FLOAT
ROW_BYTES = 64 * FLOAT


@tf.function(jit_compile=True)
def compiled(x):
    # Two small results: where one is as large as the product, TF 2.18's XLA makes the product in
    # that result's own buffer and needs no scratch for it, while 2.16's and 2.21's do not.
    return tf.reduce_sum(tf.nn.softmax(x @ x) @ x, axis=0), tf.reduce_max(x, axis=0)


@tf.function(jit_compile=True)
def single(x):
    return tf.exp(x)


def test_a_compiled_function_is_one_kernel_with_scratch(read):
    def around(x):
        first, second = compiled(x)
        return tf.reduce_sum(first) + second

    reading = read(around, SQUARE)
    call, *rest = reading.graph.operations
    assert "PartitionedCall" in call.type
    assert [reading.graph.tensors[t].bytes for t in call.outputs] == [ROW_BYTES] * 2
    scratch, table = call.workspace
    # The product inside is in scratch; how much more XLA needs is its own business.
    assert SQUARE_BYTES <= scratch <= 8 * SQUARE_BYTES
    assert table == 2 * 8
    assert [op.type for op in rest] == ["Sum", "AddV2"]


def test_without_anything_in_between_there_is_no_scratch(read):
    call, _ = read(lambda x: single(x) + 1, SQUARE).graph.operations
    assert call.workspace == ()


def test_the_same_function_is_compiled_once_for_each_shape(read):
    def twice(x, y):
        return single(x), single(x + 1), single(y)

    sizes = {
        tuple(reading.graph.tensors[t].bytes for t in op.outputs)
        for reading in [read(twice, SQUARE, tf.TensorSpec((8, 8)))]
        for op in reading.graph.operations
        if "PartitionedCall" in op.type
    }
    assert sizes == {(SQUARE_BYTES,), (8 * 8 * FLOAT,)}


def test_an_inner_compiled_function_that_changes_variables_is_walked_op_by_op(read, look):
    variable = tf.Variable(tf.ones((64, 64)))  # whose tensor is number 0 of the graph

    @tf.function(jit_compile=True)
    def update(x):
        variable.assign_add(x @ x)

    def around(x):
        update(x + 1)

    reading = read(around, SQUARE)
    assert "AssignAddVariableOp" in look(reading).types


def test_what_xla_cannot_compile_is_said(read):
    @tf.function(jit_compile=True)
    def strings(x):
        return tf.strings.length(tf.strings.as_string(x))

    with pytest.raises(UnpredictableProgramError, match=r"XLA cannot compile .*strings"):
        read(lambda x: strings(x) + 1, tf.TensorSpec((4,)))


def test_the_sums_of_a_buffer_assignment():
    from tensorflow.compiler.xla.service import hlo_pb2

    program = hlo_pb2.HloProto()
    allocations = program.buffer_assignment.buffer_allocations
    allocations.add(size=1, is_entry_computation_parameter=True)
    allocations.add(size=20, maybe_live_out=True)
    allocations.add(size=300)
    allocations.add(size=4000, is_constant=True)
    allocations.add(size=50000, is_thread_local=True)
    result = assigned(program.SerializeToString())
    assert (result.parameters, result.results) == (1, 20)
    assert (result.scratch, result.constants) == (300, 4000)


def test_xla_knows_what_the_call_leaves_open(read):
    # GIVEN a compiled function whose result's shape depends on a value that only XLA evaluates
    @tf.function(jit_compile=True)
    def reshaped(x):
        sizes = tf.raw_ops.DataFormatVecPermute(x=tf.shape(x), src_format="NHWC", dst_format="NCHW")
        return tf.reshape(x, sizes)

    reading = read(lambda x: reshaped(x) + 1.0, tf.TensorSpec((2, 3, 5, 7)))
    assert [reading.graph.tensors[t].bytes for op in reading.graph.operations for t in op.outputs]
    assert reading.graph.tensors[reading.graph.outputs[0]].bytes == 2 * 3 * 5 * 7 * FLOAT
