"""Graphs as data."""

import dataclasses

import pytest

from snugly.graph import Graph, Kind, Operation, Resident, Tensor


def test_resident_bytes_count_every_tensor_that_outlives_the_step():
    # GIVEN two slots that begin as the same zeros, a handle of no bytes, and an activation
    graph = Graph(
        tensors=[Tensor(100), Tensor(100), Tensor(0), Tensor(1000)],
        resident=[Resident(0), Resident(1, shares=0), Resident(2)],
    )
    # WHEN asked, THEN each slot counts: they share only until they are first written
    assert graph.resident_bytes() == 200


def test_two_graphs_share_nothing():
    # GIVEN two empty graphs, WHEN one grows, THEN the other does not
    one, other = Graph(), Graph()
    one.operations.append(Operation("a", "A"))
    one.inputs.append(0)
    assert other == Graph()


def test_kinds_are_the_words_of_the_public_contract():
    words = "weight optimizer gradient activation workspace input output"
    # And one for what was there before a recording began, and nobody holds by name.
    assert [str(kind) for kind in Kind] == [*words.split(), "unknown"]


def test_what_a_graph_is_made_of_cannot_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Tensor(1).bytes = 2  # type: ignore[misc]
