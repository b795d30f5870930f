"""Operators in which several devices take part: the buffers that one of them needs."""

import pytest

from snugly.readers.kernels import behaviour_of
from snugly.readers.placement import place


@pytest.mark.parametrize(
    ("elements", "devices", "piece"),
    [(1024, 2, 2048), (1000, 4, 1024), (10, 4, 64), (1024, 1, 4096)],
)
def test_a_ring_keeps_a_buffer_for_every_piece_but_its_own(node, elements, devices, piece) -> None:
    # GIVEN so many floats WHEN they are reduced over a ring
    ring = node(
        "CollectiveReduceV2",
        [(elements,), (), (), ()],
        [(elements,)],
        dtypes={1: "int32", 2: "int32", 3: "int32"},
        constants={1: devices},
        communication_hint="ring",
    )
    behaviour = behaviour_of(ring)
    # THEN it happens in place, with aligned pieces from all other devices
    assert behaviour.takes == ((0,),)
    assert behaviour.workspace == (piece,) * (devices - 1)


def test_nccl_and_a_group_of_unknown_size_take_nothing_from_the_allocator(node) -> None:
    shapes = [(1024,), (), (), ()], [(1024,)]
    carried = node("CollectiveReduceV2", *shapes, constants={1: 4}, communication_hint="nccl")
    unknown = node("CollectiveReduceV2", *shapes, communication_hint="ring")
    assert behaviour_of(carried).workspace == behaviour_of(unknown).workspace == ()


def test_gradients_are_reduced_where_they_are(node) -> None:
    placed = place(
        node("CollectiveReduceV2", [(1024,), (), (), ()], [(1024,)], device="gpu", T="float32")
    )
    assert placed.on_gpu
    assert placed.host_inputs == {1, 2, 3}
    assert not placed.host_outputs
