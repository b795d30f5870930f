"""The cheapest plan: exactly where a solver is asked, soundly and nearly where it is not."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.planning.recomputing_problems import every_plan, problems, row

from snugly.planning.recomputing import (
    Gradient,
    Part,
    Problem,
    Value,
    cheapest,
    least,
    peak_of,
    seconds_of,
)
from snugly.planning.recomputing import chain as chain_module
from snugly.planning.recomputing import search as search_module
from snugly.planning.recomputing.chain import Chain
from snugly.planning.recomputing.exact import Formulation
from snugly.planning.recomputing.passes import Passes, Plan
from snugly.planning.recomputing.polish import lowered, polished
from snugly.planning.solvers import Solution, solve

ROOM = settings(max_examples=50, deadline=None)
CHEAP = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
"""What is patched stays as it is through all examples."""


@pytest.fixture
def no_solver(monkeypatch):
    """As for a row that is too long for a solver."""
    monkeypatch.setattr(search_module, "EXACT", 0)


@ROOM
@given(problems())
def test_the_fast_count_is_the_count_of_the_check_for_every_plan(problem):
    passes = Passes(problem)
    for segments in every_plan(problem):
        plan = Plan.of(segments, len(problem.parts))
        assert plan.segments == segments
        assert passes.peak(plan) == peak_of(problem, segments)
        assert passes.cost(plan) == pytest.approx(seconds_of(problem, segments))


@ROOM
@given(problems(), st.floats(0, 1))
def test_no_plan_is_cheaper_than_the_one_that_is_found(problem, share):
    # GIVEN the peak of every plan there is, and a budget somewhere between the least and the most
    peaks = {plan: peak_of(problem, plan) for plan in every_plan(problem)}
    budget = int(min(peaks.values()) * (1 - share) + peaks[()] * share)
    # WHEN the planner is asked
    found = cheapest(problem, budget)
    # THEN its plan is inside, and none inside is cheaper
    assert found is not None
    assert peaks[found] <= budget
    best = min(seconds_of(problem, plan) for plan, peak in peaks.items() if peak <= budget)
    assert seconds_of(problem, found) == pytest.approx(best, abs=1e-6)


@ROOM
@given(problems())
def test_the_least_is_the_least_of_all_plans_and_the_cheapest_of_those(problem):
    size, plan = least(problem)
    peaks = {one: peak_of(problem, one) for one in every_plan(problem)}
    assert size == peaks[plan] == min(peaks.values())
    best = min(seconds_of(problem, one) for one, peak in peaks.items() if peak == size)
    assert seconds_of(problem, plan) == pytest.approx(best, abs=1e-6)


@ROOM
@given(problems())
def test_below_the_least_there_is_nothing(problem):
    assert cheapest(problem, least(problem)[0] - 1) is None


def skips(count, size=100):
    """An hourglass: what each of the first parts makes is taken by its mirror image, too."""
    parts = tuple(Part(f"layer{i}", 1.0) for i in range(2 * count))
    values = [Value(size, i, (i + 1,), (i, i + 1)) for i in range(2 * count - 1)]
    values += [Value(size, i, (2 * count - 1 - i,), ()) for i in range(count - 1)]
    return Problem(parts, tuple(values), tuple(Gradient(size, i, i - 1) for i in range(1, count)))


@pytest.mark.parametrize("problem", [row(24), skips(8), skips(12)])
@pytest.mark.parametrize("share", [0.9, 0.7])
def test_without_a_solver_plans_are_sound_and_not_much_dearer(problem, share, monkeypatch):
    # GIVEN the best plan there is
    budget = int(peak_of(problem, ()) * share)
    best = cheapest(problem, budget)
    assert best is not None
    # WHEN the row is taken for a long one
    monkeypatch.setattr(search_module, "EXACT", 0)
    found = cheapest(problem, budget)
    # THEN there is a plan, of nearly its cost
    assert found is not None
    assert peak_of(problem, found) <= budget
    assert seconds_of(problem, found) <= 1.2 * seconds_of(problem, best) + 1


@pytest.mark.usefixtures("no_solver")
@settings(max_examples=25, deadline=None)
@given(problems(), st.integers(0, 400))
def test_without_a_solver_plans_stay_inside_their_budget(problem, budget):
    found = cheapest(problem, budget)
    if found is not None:
        assert peak_of(problem, found) <= budget


def by_the_chain_alone(problem, budget):
    """The chain's own plan for a budget, less the segments that it could do without."""
    found = Chain(problem).shortest(budget, rounded_up=True)
    if found is None or peak_of(problem, found) > budget:
        return None
    for segment in sorted(found, key=lambda span: -seconds_of(problem, (span,))):
        fewer = tuple(one for one in found if one != segment)
        found = fewer if peak_of(problem, fewer) <= budget else found
    return found


@pytest.mark.parametrize("exact", [search_module.EXACT, 0])
@settings(max_examples=25, deadline=None, suppress_health_check=CHEAP)
@given(problem=problems(10), share=st.floats(0, 1))
def test_the_search_never_loses_to_the_chain(problem, share, exact, monkeypatch):
    # GIVEN the plan of the chain alone, of a small step, and of one that is taken for a long one
    monkeypatch.setattr(search_module, "EXACT", exact)
    budget = int(peak_of(problem, ()) * share)
    alone = by_the_chain_alone(problem, budget)
    # WHEN all that there is looks for one
    found = cheapest(problem, budget)
    # THEN there is one wherever the chain has one, and it is no dearer
    if alone is not None:
        assert found is not None
        assert peak_of(problem, found) <= budget
        assert seconds_of(problem, found) <= seconds_of(problem, alone) * (1 + 1e-6)


@pytest.mark.parametrize("exact", [search_module.EXACT, 0])
@settings(max_examples=10, deadline=None, suppress_health_check=CHEAP)
@given(problem=problems(10))
def test_nothing_is_smaller_in_the_chain_than_the_least(problem, exact, monkeypatch):
    monkeypatch.setattr(search_module, "EXACT", exact)
    size, plan = least(problem)
    assert peak_of(problem, plan) == size
    for share in (0.3, 0.5, 0.7, 0.9):
        alone = Chain(problem).shortest(int(peak_of(problem, ()) * share), rounded_up=True)
        assert alone is None or peak_of(problem, alone) >= size


@pytest.mark.parametrize("problem", [row(70), skips(36)])
@pytest.mark.parametrize("share", [0.4, 0.7])
def test_long_rows_never_lose_to_the_chain(problem, share):
    budget = int(peak_of(problem, ()) * share)
    alone, found = by_the_chain_alone(problem, budget), cheapest(problem, budget)
    if alone is not None:
        assert found is not None
        assert peak_of(problem, found) <= budget
        assert seconds_of(problem, found) <= seconds_of(problem, alone)


@pytest.mark.parametrize("problem", [row(30), row(81), skips(40)])
def test_even_segments_are_never_cheaper_at_their_own_peak(problem):
    # GIVEN √n segments of the same length, as they are cut by hand
    count = len(problem.parts)
    each = math.isqrt(count)
    even = tuple((first, min(count, first + each)) for first in range(0, count, each))
    budget = peak_of(problem, even)
    assert budget < peak_of(problem, ())
    # WHEN the planner is given what they need THEN it computes less again
    found = cheapest(problem, budget)
    assert found is not None
    assert peak_of(problem, found) <= budget
    assert seconds_of(problem, found) < seconds_of(problem, even)


@pytest.mark.usefixtures("no_solver")
def test_where_there_is_room_less_room_is_never_the_better_budget():
    # A chain that rounds every part up may find nothing in a budget, and something in less.
    problem = row(70)
    whole = peak_of(problem, ())
    costs = []
    for share in (0.7, 0.5, 0.35):
        plan = cheapest(problem, int(whole * share))
        assert plan is not None
        costs.append(seconds_of(problem, plan))
    assert costs == sorted(costs)


@pytest.mark.usefixtures("no_solver")
def test_without_a_solver_the_least_is_a_plan_that_is_inside_it():
    problem = row(16)
    size, plan = least(problem)
    assert peak_of(problem, plan) == size <= 900


@pytest.mark.usefixtures("no_solver")
def test_without_a_solver_there_may_be_nothing_to_find():
    problem = row(6, fixed=True)
    assert cheapest(problem, peak_of(problem, ()) - 1) is None
    assert least(problem) == (peak_of(problem, ()), ())


def test_long_rows_are_looked_at_where_least_crosses(monkeypatch):
    monkeypatch.setattr(chain_module, "MOST_PLACES", 8)
    problem = row(40)
    plan = Chain(problem).shortest(2200)
    assert plan is not None
    assert peak_of(problem, plan) <= 2200


def test_a_row_is_cut_about_as_well_by_the_chain_alone():
    inside = [plan for plan in every_plan(row(7)) if peak_of(row(7), plan) <= 600]
    best = min(seconds_of(row(7), plan) for plan in inside)
    found = Chain(row(7)).shortest(600)
    assert found is not None
    assert seconds_of(row(7), found) <= best + 1


def test_polishing_finds_what_need_not_be_computed_again_and_keeps_what_is_fixed():
    # GIVEN a plan that computes far more again than the budget asks for, beside a fixed part
    plain = row(12)
    parts = (*plain.parts[:6], Part("fixed", 1.0, fixed=True), *plain.parts[7:])
    problem = Problem(parts, plain.values, plain.gradients)
    passes = Passes(problem)
    plan = Plan.of(((0, 3), (3, 6), (7, 12)), 12)
    budget = peak_of(problem, ()) - 100
    assert passes.peak(plan) <= budget
    # WHEN it is polished, twice
    found = polished(passes, plan, budget, 3000)
    again = polished(passes, plan, budget, 3000)
    # THEN less is computed again, inside the budget, the same both times
    assert passes.peak(found) <= budget
    assert passes.cost(found) <= 4
    assert not found.again[6]
    assert again.segments == found.segments


def test_a_plan_is_lowered_whatever_that_costs_and_never_raised():
    # GIVEN an hourglass, whose skips the chain counts as stored all the way
    problem = skips(10)
    passes = Passes(problem)
    start = Plan.of(((0, 10), (10, 20)), 20)
    # WHEN it is lowered, or has no changes to try
    found = lowered(passes, start)
    # THEN less is alive at its peak, by the check as well
    assert passes.peak(found) == peak_of(problem, found.segments) < passes.peak(start)
    assert lowered(passes, start, 0) is start


def test_segments_that_are_not_needed_are_put_back():
    passes = Passes(row(4))
    assert search_module._relaxed(passes, Plan.of(((0, 2), (2, 4)), 4), 1000).segments == ()


@pytest.mark.parametrize("times", [1, 2])
def test_an_answer_that_breaks_the_budget_is_asked_for_again_and_never_given_out(
    times, monkeypatch
):
    # GIVEN a solver that now and then overlooks the budget, as floating point does
    problem = row(8)
    asked = []

    def careless(program, **limits):
        asked.append(program)
        if len(asked) <= times:
            return Solution((0,) * len(program.costs), proven=True)
        return solve(program, **limits)

    monkeypatch.setattr(search_module, "solve", careless)
    # WHEN a plan is asked for
    found = cheapest(problem, 700)
    # THEN it is inside the budget, from the solver or from the chain
    assert found is not None
    assert peak_of(problem, found) <= 700
    assert len(asked) == 2


def test_what_a_solver_did_not_finish_is_left_to_the_chain(monkeypatch):
    def tired(_program, **_limits):
        return Solution(None, proven=False)

    problem = row(8)
    monkeypatch.setattr(search_module, "solve", tired)
    found = cheapest(problem, 700)
    assert found is not None
    assert peak_of(problem, found) <= 700
    assert least(problem)[0] <= peak_of(problem, ())


def test_a_step_of_nothing_has_nothing_to_compute_again():
    nothing = Problem((), ())
    assert cheapest(nothing, 0) == ()
    assert cheapest(nothing, -1) is None
    assert least(nothing) == (0, ())


def test_costs_of_picoseconds_are_told_apart():
    # GIVEN parts that cost next to nothing, the later the more
    plain = row(6)
    parts = tuple(Part(part.name, 1e-12 * (i + 1)) for i, part in enumerate(plain.parts))
    problem = Problem(parts, plain.values, plain.gradients)
    # WHEN a plan is asked for THEN it is the cheapest all the same
    found = cheapest(problem, 600)
    assert found is not None
    inside = [plan for plan in every_plan(problem) if peak_of(problem, plan) <= 600]
    best = min(seconds_of(problem, plan) for plan in inside)
    assert seconds_of(problem, found) == pytest.approx(best, rel=1e-6)


def test_values_that_live_alike_are_one_to_the_solver():
    problem = row(5)
    twice = Problem(problem.parts, problem.values * 2, problem.gradients * 2)
    one, two = (Formulation(each, 300).program for each in (problem, twice))
    assert len(one.costs) == len(two.costs)
