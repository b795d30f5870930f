"""Scopes out of operations' names, for traces made without us."""

import pytest

from snugly.graph.model import Kind, Origin
from snugly.recording.record import Record
from snugly.recording.scopes import NOTE, scope_of, with_scopes
from snugly.timeline import Span, Timeline
from snugly.units import Size


@pytest.mark.parametrize(
    ("operation", "scope"),
    [
        ("resnet50/conv1_conv/BiasAdd", "resnet50/conv1_conv"),
        ("StatefulPartitionedCall/sequential_1/dense_1/MatMul:_MklMatMul", "sequential_1/dense_1"),
        ("StatefulPartitionedCall/PartitionedCall_2/model/dense/Relu", "model/dense"),
        ("StatefulPartitionedCall/gradient_tape/model/bn/moments/Tile_1", "model/bn"),
        ("StatefulPartitionedCall/adam/Square_204", "adam"),
        ("MatMul", None),
        ("StatefulPartitionedCall/Identity", None),
        ("", None),
    ],
)
def test_the_first_two_scopes_are_taken_without_what_tensorflow_puts_in_front(operation, scope):
    assert scope_of(operation) == scope


def test_a_layer_that_is_known_stays():
    spans = [
        Span(8, Kind.ACTIVATION, "model/dense/MatMul", 0, 2, Origin("my_layer", "a.py:1")),
        Span(4, Kind.ACTIVATION, "model/dense/MatMul", 0, 2, Origin(None, "a.py:2")),
        Span(2, Kind.UNKNOWN, "(before the recording)", 0, 2),
    ]
    record = with_scopes(
        Record(program="p", device="CPU:0", peak=Size(16), timeline=Timeline(spans, 2))
    )
    assert [(tensor.layer, tensor.line) for tensor in record.tensors] == [
        ("my_layer", "a.py:1"),
        ("model/dense", "a.py:2"),
        (None, None),
    ]
    assert record.notes == (NOTE,)
