"""Durations to an order of magnitude: only their order matters."""

from snugly.readers.cost import seconds
from snugly.readers.node import Node, Value


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


def test_arithmetic_dominates_products_and_convolutions():
    product = seconds(node("MatMul", [(1000, 1000), (1000, 1000)], [(1000, 1000)]))
    # 2·10⁹ operations at 7·10¹⁰ a second
    assert 0.02 < product < 0.04
    image = (8, 64, 64, 32)
    convolution = seconds(node("Conv2D", [image, (3, 3, 32, 32)], [image]))
    # 2·9·32 operations for each of 2²⁰ elements
    assert 0.5 < convolution / (2 * 9 * 32 * 8 * 64 * 64 * 32 / 7e10) < 2


def test_nothing_is_too_little_to_be_timed():
    assert seconds(node("NoOp", [], [])) > 0
    assert seconds(node("Conv2D", [(1,)], [(1,)])) > 0
    assert seconds(node("Rank", [(1,)], [])) > 0
