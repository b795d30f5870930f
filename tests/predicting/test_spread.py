"""From simulated peaks to a number and a range."""

import pytest

from snugly.graph import Graph, Kind, Operation, Origin, Tensor
from snugly.predicting import spread as module
from snugly.predicting.estimate import Estimate
from snugly.predicting.spread import spread_of
from snugly.readers.read import Reading

INPUT = 40


def reading(*, inputs_stay=True, turns=1, **facts):
    graph = Graph(tensors=[Tensor(INPUT, Kind.INPUT)], inputs=[0])
    graph.inputs_stay, graph.turns = inputs_stay, turns
    return Reading(graph, "program", "2.21", False, lambda _: Origin(), **facts)


def lives(*peaks, rough=()):
    return Estimate(lives=[list(steps) for steps in peaks], rough=list(rough))


def test_the_peak_is_the_middle_of_the_highest_steps_after_the_first():
    # GIVEN three lives whose first step is the highest
    said = spread_of(lives((900, 100, 110), (900, 120, 90), (900, 130, 100)), reading())
    # THEN the first steps count nowhere
    assert said.peak == 120
    assert said.high == round(130 * (1 + module.FORWARD.above))
    assert said.low == round(90 * (1 - module.FORWARD.below))


def test_a_tenth_of_the_steps_is_left_out_below():
    said = spread_of(lives(range(100, 111)), reading())  # ten steps after the first
    assert said.low == round(102 * (1 - module.FORWARD.below))


def test_inputs_may_not_be_counted():
    alone = spread_of(lives((100, 100)), reading())
    borrowed = spread_of(lives((100, 100)), reading(inputs_stay=False))
    assert alone.low - borrowed.low == INPUT
    # AND on a GPU they always are: they have to be copied there
    assert spread_of(lives((100, 100)), reading(inputs_stay=False, on_gpu=True)).low > borrowed.low


def test_long_stalls_raise_the_range_alone():
    said = spread_of(lives((100, 100), rough=(150, 140)), reading(turns=50))
    assert said.peak == 100
    assert said.high == round(150 * (1 + module.LOOPS.above))


def test_gradients_widen_the_range_upwards():
    backward = reading()
    backward.graph.tensors.append(Tensor(8, Kind.GRADIENT))
    forward, said = (spread_of(lives((100, 100)), of) for of in (reading(), backward))
    assert said.high > forward.high
    assert said.low == forward.low


def test_on_a_gpu_the_scratch_of_convolutions_is_not_certain():
    plain, convolving = reading(on_gpu=True), reading(on_gpu=True)
    convolving.graph.operations = [Operation("conv", "Conv2D", workspace=(20, 4))]
    without, said = (spread_of(lives((100, 100)), of) for of in (plain, convolving))
    assert said.low == without.low - 30
    assert said.high == without.high + 30
    assert said.peak == without.peak


@pytest.mark.parametrize(
    ("facts", "margins"),
    [
        ({}, module.FORWARD),
        ({"turns": 10}, module.LOOPS),
        ({"on_gpu": True}, module.ON_GPU),
        ({"on_gpu": True, "turns": 10}, module.ON_GPU),
        ({"compiled": True}, module.COMPILED),
        ({"compiled": True, "on_gpu": True}, module.COMPILED_ON_GPU),
        ({"compiled_elsewhere": True, "on_gpu": True}, module.STANDING_IN),
    ],
)
def test_margins_follow_from_what_is_not_known(facts, margins):
    assert module.margins_for(reading(**facts)) == margins
