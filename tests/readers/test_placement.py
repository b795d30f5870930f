"""Where TensorFlow puts a node on a machine with a GPU."""

from snugly.readers.node import Node, Value
from snugly.readers.placement import argument_on_host, kernels, place

FLOATS = Value("float32", 4, (2, 2))


def test_a_product_runs_on_the_gpu():
    placed = place(Node("m", "MatMul", [FLOATS, FLOATS], [FLOATS], {"T": "float32"}))
    assert placed.on_gpu
    assert not placed.host_inputs
    assert not placed.host_outputs


def test_shapes_stay_in_host_memory():
    placed = place(Node("r", "Reshape", [FLOATS, FLOATS], [FLOATS], {"T": "float32"}))
    assert placed.on_gpu
    assert placed.host_inputs == {1}
    placed = place(Node("s", "Shape", [FLOATS], [FLOATS], {"T": "float32", "out_type": "int32"}))
    assert placed.host_outputs == {0}


def test_what_has_no_gpu_kernel_runs_on_the_cpu():
    strings = Value("string", 0, (2,))
    placed = place(Node("j", "StringJoin", [strings, strings], [strings], {"N": 2}))
    assert not placed.on_gpu
    assert placed.host_inputs == {0, 1}
    assert placed.host_outputs == {0}


def test_types_without_a_kernel_of_their_own_run_on_the_cpu():
    assert not place(Node("m", "MatMul", [FLOATS], [FLOATS], {"T": "uint16"})).on_gpu


def test_every_line_of_the_table_can_be_read():
    assert len(kernels()) > 400
    for operator, lines in kernels().items():
        for kernel in lines:
            attribute = "T" if kernel.attribute == "-" else kernel.attribute
            node = Node("n", operator, [FLOATS] * 3, [FLOATS] * 3, {attribute: "float32"})
            placed = place(node)
            assert placed.host_inputs <= {0, 1, 2}
            assert placed.host_outputs <= {0, 1, 2}


def test_small_integers_and_handles_arrive_in_host_memory():
    assert argument_on_host("int32")
    assert argument_on_host("resource")
    assert not argument_on_host("float32")
    assert not argument_on_host("int64")
