"""`best_order`: held against trying every order."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from snugly.planning.overlap import Step, best_order
from snugly.planning.overlap import order as ordering


def never():
    return False


@st.composite
def programs(draw, most=6):
    """Steps that each take some values made before, and make one or two."""
    steps, values = [], draw(st.integers(1, 2))
    given_values = values
    for index in range(draw(st.integers(0, most))):
        takes = draw(st.lists(st.integers(0, values - 1), max_size=2, unique=True))
        makes = tuple(range(values, values + draw(st.integers(1, 2))))
        values += len(makes)
        after = (draw(st.integers(0, index - 1)),) if index and draw(st.booleans()) else ()
        saves = {takes[0]: draw(st.integers(0, 2))} if takes and draw(st.booleans()) else {}
        steps.append(Step(tuple(takes), makes, after, draw(st.integers(0, 3)), saves))
    sizes = [draw(st.integers(2, 9)) for _ in range(values)]
    kept = draw(st.sets(st.integers(0, values - 1), max_size=2))
    return steps, sizes, kept, given_values


def is_possible(steps, order):
    makers = {value: index for index, step in enumerate(steps) for value in step.makes}
    done = set()
    for index in order:
        needed = {makers[value] for value in steps[index].takes if value in makers}
        if not (needed | set(steps[index].after)) <= done:
            return False
        done.add(index)
    return True


def peak_of(steps, sizes, kept, order):
    """The most that is live at once, counted from scratch."""
    made = {value for step in steps for value in step.makes}
    takers = {v: {i for i, step in enumerate(steps) if v in step.takes} for v in range(len(sizes))}
    live = {v for v in range(len(sizes)) if v not in made and (takers[v] or v in kept)}
    done, peak = set(), sum(sizes[v] for v in live)
    for index in order:
        step = steps[index]
        done.add(index)
        live |= set(step.makes)
        dying = {v for v in step.takes if v not in kept and takers[v] <= done}
        saved = max((step.saves.get(v, 0) for v in dying), default=0)
        peak = max(peak, sum(sizes[v] for v in live) + step.scratch - saved)
        unused = {v for v in step.makes if not takers[v] and v not in kept}
        live -= dying | unused
    return peak


@given(programs())
@settings(deadline=None, max_examples=300)
def test_no_order_has_a_lower_peak(program):
    steps, sizes, kept, _ = program
    found = best_order(steps, sizes, kept, expired=never)
    orders = itertools.permutations(range(len(steps)))
    least = min(peak_of(steps, sizes, kept, one) for one in orders if is_possible(steps, one))
    assert is_possible(steps, found.order)
    assert sorted(found.order) == list(range(len(steps)))
    assert found.peak == peak_of(steps, sizes, kept, found.order) == least
    assert found.optimal


@given(programs(most=8), st.booleans())
@settings(deadline=None, max_examples=200)
def test_a_beam_gives_an_order_that_is_possible_and_no_worse(program, hurry):
    steps, sizes, kept, _ = program
    found = best_order(steps, sizes, kept, expired=lambda: hurry, most=0)
    assert is_possible(steps, found.order)
    assert found.peak == peak_of(steps, sizes, kept, found.order)
    assert found.peak <= peak_of(steps, sizes, kept, range(len(steps)))


def branches():
    """Two branches of a wide and a narrow value each: the second should follow the first."""
    steps = [
        Step((0,), (1,)),  # wide
        Step((0,), (2,)),  # wide
        Step((1,), (3,)),  # narrow
        Step((2,), (4,)),  # narrow
        Step((3, 4), (5,)),
    ]
    return steps, [1, 100, 100, 1, 1, 1], {5}


def test_one_branch_is_finished_before_the_next_begins():
    steps, sizes, kept = branches()
    found = best_order(steps, sizes, kept, expired=never)
    assert found.peak == 102
    assert found.order in {(0, 2, 1, 3, 4), (1, 3, 0, 2, 4)}
    beam = best_order(steps, sizes, kept, expired=never, most=1)
    assert (beam.peak, beam.optimal) == (102, False)


def test_an_order_that_is_as_good_stays_as_it_is():
    steps = [Step((0,), (1,)), Step((0,), (2,)), Step((1, 2), (3,))]
    assert best_order(steps, [4, 4, 4, 4], {3}, expired=never).order == (0, 1, 2)
    assert best_order(steps, [4, 4, 4, 4], {3}, expired=never, most=0).order == (0, 1, 2)


def test_what_is_not_possible_or_too_long_is_left_alone(monkeypatch):
    backwards = [Step((1,), (2,)), Step((0,), (1,))]
    assert best_order(backwards, [1, 1, 1], {2}, expired=never).order == (0, 1)
    monkeypatch.setattr(ordering, "MOST_STEPS", 4)
    steps, sizes, kept = branches()
    assert best_order(steps, sizes, kept, expired=never).order == (0, 1, 2, 3, 4)
