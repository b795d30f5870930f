"""Who keeps an object, and by which name."""

import functools
from collections import deque

from snugly.recording.leaks.holders import common_holder, has_fixed_places, is_bounded, names_of


class Thing:
    pass


class Keeper:
    def __init__(self):
        self.things = [Thing() for _ in range(6)]


KEPT = {number: (number, Thing()) for number in range(6)}


def names(container):
    return {str(name) for name in names_of(container)}


def test_a_local_list():
    things = [Thing() for _ in range(6)]
    holder = common_holder(things[1:5])
    assert holder is things
    assert "things" in names(holder)


def test_an_attribute():
    keeper = Keeper()
    assert common_holder(keeper.things[:4]) is keeper.things
    assert "Keeper.things" in names(keeper.things)


def test_parts_of_the_items_of_a_global_dictionary():
    assert common_holder([pair[1] for pair in KEPT.values()]) is KEPT
    assert "KEPT" in names(KEPT)


def test_a_closure():
    def make():
        seen = [Thing() for _ in range(6)]
        return lambda: seen

    look = make()
    assert "seen" in names(look())


def test_a_mutable_default():
    def call(seen=[]):  # noqa: B006 - that is the point
        seen.append(Thing())
        return seen

    assert "seen" in names(call())


def test_a_cached_function_without_and_with_a_limit():
    @functools.lru_cache(maxsize=None)  # noqa: UP033 - beside the other
    def endless(number):
        return Thing(), number

    @functools.lru_cache(maxsize=100)
    def limited(number):
        return Thing(), number

    for function, limit in ((endless, False), (limited, True)):
        holder = common_holder([function(number)[0] for number in range(8)])
        assert holder is function
        assert is_bounded(holder) is limit
        assert names(holder) == {function.__name__}


def test_a_deque_with_a_limit_is_bounded():
    assert is_bounded(deque(maxlen=3))
    assert not is_bounded(deque())
    assert not is_bounded([])


def test_attributes_of_one_object_are_fixed_places():
    owner = Thing()
    for number in range(6):
        setattr(owner, f"part{number}", Thing())
    holder = common_holder(list(vars(owner).values())[:5])
    assert has_fixed_places(holder)
    assert not has_fixed_places([])
