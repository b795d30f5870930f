"""Durations to an order of magnitude: only their order matters."""

from dataclasses import replace

import pytest

from snugly.readers.cost import seconds
from snugly.readers.node import Machine, Node, Value


def node(operator, inputs, outputs):
    values = [[Value("float32", 4, shape) for shape in shapes] for shapes in (inputs, outputs)]
    return Node("n", operator, *values)


def test_a_name_for_a_buffer_costs_nothing_but_its_dispatch():
    assert seconds(node("Identity", [(1024, 1024)], [(1024, 1024)])) < 1e-6


def test_larger_takes_longer():
    for operator in ("Relu", "Softmax", "RandomUniform"):
        small = seconds(node(operator, [(100, 100)], [(100, 100)]))
        large = seconds(node(operator, [(1000, 1000)], [(1000, 1000)]))
        assert 10 < large / small < 101


def test_random_numbers_take_longer_than_sums():
    shape = [(1000, 1000)]
    drawn, added = (seconds(node(operator, shape, shape)) for operator in ("RandomUniform", "Add"))
    assert drawn > 5 * added


def test_arithmetic_dominates_products():
    product = seconds(node("MatMul", [(1000, 1000), (1000, 1000)], [(1000, 1000)]))
    # 2·10⁹ operations at 9·10¹⁰ a second
    assert 0.02 < product < 0.03


def test_eigen_turns_weights_over_where_onednn_does_not():
    product = node("MatMul", [(8, 4096), (4096, 4096)], [(8, 4096)])
    product.attributes = {"transpose_b": True}
    convolution = node("Conv2DBackpropInput", [(4,), FILTERS, RESULT], [IMAGE])
    for quick in (product, convolution):
        slow = replace(quick, machine=Machine(onednn=False))
        assert seconds(slow) > seconds(quick)
    assert seconds(replace(product, machine=Machine(onednn=False))) > 4 * seconds(product)


IMAGE, FILTERS = (8, 64, 64, 32), (3, 3, 32, 64)
RESULT = (8, 64, 64, 64)
OPERATIONS = 2 * 9 * 32 * 8 * 64 * 64 * 64  # a filter's worth for each element of the result


def test_a_convolution_and_both_its_gradients_compute_the_same_amount():
    forward = node("Conv2D", [IMAGE, FILTERS], [RESULT])
    image = node("Conv2DBackpropInput", [(4,), FILTERS, RESULT], [IMAGE])
    filters = node("Conv2DBackpropFilter", [IMAGE, (4,), RESULT], [FILTERS])
    assert 0.9 < seconds(forward) / (OPERATIONS / 12e10) < 1.3
    assert 0.9 < seconds(image) / (OPERATIONS / 7e10) < 1.3
    assert 0.9 < seconds(filters) / (OPERATIONS / 7e10) < 1.3


def test_a_depthwise_convolution_computes_a_window_for_each_element():
    depthwise = node("DepthwiseConv2dNative", [IMAGE, (3, 3, 32, 1)], [IMAGE])
    assert seconds(depthwise) < seconds(node("Conv2D", [IMAGE, FILTERS], [RESULT]))


def test_an_update_reads_and_writes_its_variable():
    (moved,) = ((1000, 1000),)
    update = seconds(node("AssignSubVariableOp", [(), moved], []))
    assert update == pytest.approx(seconds(node("Add", [moved, moved], [moved])), rel=0.01)


def test_nothing_is_too_little_to_be_timed():
    assert seconds(node("NoOp", [], [])) > 0
    assert seconds(node("Conv2D", [(1,)], [(1,)])) > 0
    assert seconds(node("Conv2D", [(1,), (1,)], [(1,)])) > 0
    assert seconds(node("Conv2DBackpropInput", [(1,), (1,)], [(1,)])) > 0
    assert seconds(node("Rank", [(1,)], [])) > 0
