"""Solvers: what they find is best, and they say whether it is."""

from snugly.planning.solvers import Program, solve

LIMITS = {"nodes": 1000, "seconds": 20.0}


def knapsack(limit):
    """Leave out as little worth as possible, where all that stays must weigh at most so much."""
    program = Program()
    worths, weights = (6.0, 5.0, 4.0), (5, 4, 3)
    left_out = [program.column(cost=worth, decided=True) for worth in worths]
    columns = {one: -weight for one, weight in zip(left_out, weights, strict=True)}
    program.at_most(columns, limit - sum(weights))
    return program


def test_the_best_is_found_and_said_to_be_it():
    found = solve(knapsack(7), **LIMITS)
    assert found.columns == (1, 0, 0)
    assert found.proven


def test_where_nothing_is_possible_that_is_said():
    found = solve(knapsack(-1), **LIMITS)
    assert found.columns is None
    assert found.proven


def test_a_search_that_was_cut_short_proves_nothing():
    found = solve(knapsack(7), nodes=1000, seconds=0.0)
    assert not found.proven


def test_rows_that_nothing_could_break_are_left_out():
    program = knapsack(7)
    program.at_most({0: 1, 1: 1}, 2)
    program.at_most({0: 0}, 0)
    assert len(program.rows) == 1
    free = Program([1.0], [1], [True])
    assert solve(free, **LIMITS).columns == (0,)


def test_a_row_of_nothing_may_be_broken_as_well():
    program = knapsack(7)
    program.at_most({}, -1)
    assert solve(program, **LIMITS).columns is None


def test_a_column_that_is_fixed_stays_so():
    program = knapsack(7)
    program.most[0] = 0
    assert solve(program, **LIMITS).columns == (0, 1, 1)
