"""A function that reads something else than last time is another function."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import snugly
from snugly.jacobians.surroundings import surroundings

pytestmark = pytest.mark.tensorflow
SCALE = 2.0


def scaled(x):
    return x * SCALE


def through_another(x):
    return scaled(x) + 0.0


class Solver:
    def __init__(self, step):
        self.step = step

    def advance(self, x):
        return x * self.step

    def __call__(self, x):
        return self.advance(x)


def slope(f):
    return float(snugly.jacobian(f, tf.ones(1))[0, 0])


@pytest.mark.parametrize("function", [scaled, through_another])
def test_a_global_that_changed(function, monkeypatch):
    assert slope(function) == 2.0
    monkeypatch.setitem(function.__globals__, "SCALE", 5.0)
    assert slope(function) == 5.0


def test_a_closure_that_changed():
    factor = 2.0

    def f(x):
        return x * factor

    assert slope(f) == 2.0
    factor = 3.0
    assert slope(f) == 3.0


def test_an_array_that_was_written_to():
    factors = np.full(1, 2.0, np.float32)

    def f(x):
        return x * factors

    assert slope(f) == 2.0
    factors[0] = 7.0
    assert slope(f) == 7.0


@pytest.mark.parametrize(
    "take",
    [
        lambda solver: solver,
        lambda solver: solver.advance,
        lambda solver, made={}: made.setdefault("f", lambda x: x * solver.step),
    ],
)
def test_an_object_that_was_set_otherwise(take):
    solver = Solver(2.0)
    assert slope(take(solver)) == 2.0
    solver.step = 4.0
    assert slope(take(solver)) == 4.0


def test_weights_that_were_put_in_another_s_place():
    weights = {"first": tf.constant(2.0), "others": [tf.constant(1.0)]}

    def f(x):
        return x * weights["first"] * weights["others"][0]

    assert slope(f) == 2.0
    weights["others"][0] = tf.constant(3.0)
    assert slope(f) == 6.0
    weights["first"] = tf.constant(1.0)
    assert slope(f) == 3.0


def test_what_a_function_counts_itself_is_not_a_change():
    traced, times = [], 0
    solver = Solver(2.0)

    def f(x):
        nonlocal times
        traced.append(1)
        times += 1
        solver.calls = times
        return x * solver.step

    slope(f)
    before = len(traced)
    slope(f)
    assert len(traced) == times == before


def test_nothing_changed():
    table = {"a": [1, 2.0, np.arange(3)], "b": {"c": None}}
    deep = functools.partial(lambda x, _: x * table["a"][1], _=SCALE)

    for thing in (deep, scaled, Solver(1.0).advance, keras.layers.Dense(3), len):
        assert surroundings(thing) == surroundings(thing)


def test_what_is_gone_is_never_the_same_as_what_took_its_place():
    def f(x):
        return x * held.step

    held = Solver(1.0)
    before = surroundings(f)
    held = Solver(1.0)

    assert surroundings(f) != before


def test_attributes_of_objects_are_read_one_level_deep():
    solver = Solver(1.0)
    before = surroundings(solver.advance)

    assert surroundings(solver.advance) == before
    solver.step = 2.0
    assert surroundings(solver.advance) != before


def test_containers_that_hold_themselves_come_to_an_end():
    endless = []
    endless.append(endless)

    def f(x):
        return x if endless else -x

    assert surroundings(f) == surroundings(f)


def test_changes_do_not_pile_up(monkeypatch):
    from snugly.jacobians.known import _known

    for number in range(5):
        monkeypatch.setitem(scaled.__globals__, "SCALE", float(number + 10))
        slope(scaled)

    assert len(_known[scaled]) == 1
