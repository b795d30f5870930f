"""The cheapest plan inside a budget: exactly where the step is small, nearly where it is not.

A solver finds the best plan of a small step within a second or two, and of most steps of up to
`EXACT` parts within its time. HiGHS and CP-SAT found plans of the same cost, and proved it, on all
steps of up to 31 parts that they were compared on, CP-SAT on two threads in two thirds of the time
(`benchmarks/recompute_planning.py`); HiGHS is in SciPy, which is here anyway, and ortools wants
another protobuf than TensorFlow.
Longer rows, and what the solver does not finish, are cut by the chain for several budgets around
the one that is asked for, and the best of these is polished: no plan is dearer than the chain's own
for that budget, and one is found wherever the chain finds one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from snugly.planning.recomputing.chain import Chain
from snugly.planning.recomputing.check import peak_of, seconds_of
from snugly.planning.recomputing.exact import Formulation
from snugly.planning.recomputing.passes import Passes, Plan
from snugly.planning.recomputing.polish import lowered, polished
from snugly.planning.solvers import solve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.planning.recomputing.problem import Problem, Segments

EXACT: Final = 64
"""Parts up to which a solver is asked."""
NODES: Final = 20_000
SECONDS: Final = 10.0
"""How long it may look: branches, and time."""
_TRIES: Final = 6
"""Budgets that the chain is asked for."""
_WIDER: Final = 1.3
_CLOSER: Final = 0.8
_SEARCHES: Final = 12
"""Halvings of the range in which the least budget lies."""
_TOLERANCE: Final = 1e-5
"""What HiGHS may be over a row without seeing it, and some more: its tolerance is 1e-6."""


def cheapest(problem: Problem, budget: int) -> Segments | None:
    """The segments that cost the least time within a budget; None where none were found.

    The budget is for all that is above weights, inputs and optimizer.
    """
    if peak_of(problem, ()) <= budget:
        return ()
    if not problem.parts:
        return None
    plans: list[Segments] = []
    proven = False
    if len(problem.parts) <= EXACT:
        found, proven = _exact(problem, budget)
        plans += [found] if found is not None else []
    if not proven:
        plans += _nearly(problem, budget)
    return min(plans, key=lambda plan: seconds_of(problem, plan), default=None)


def least(problem: Problem) -> tuple[int, Segments]:
    """The least budget that some plan stays inside of, as far as was found, and such a plan."""
    plans: list[Segments] = [()]
    proven = False
    if len(problem.parts) <= EXACT:
        formulation = Formulation(problem, None)
        solution = solve(formulation.program, nodes=NODES, seconds=SECONDS)
        plans += [formulation.segments(solution)] if solution.columns is not None else []
        proven = solution.proven
    if not proven:
        plans += _low(problem)

    def smaller(plan: Segments) -> tuple[int, float]:
        return peak_of(problem, plan), seconds_of(problem, plan)

    best = min(plans, key=smaller)
    cheaper = cheapest(problem, peak_of(problem, best))
    best = min(best, best if cheaper is None else cheaper, key=smaller)
    return peak_of(problem, best), best


def _low(problem: Problem) -> list[Segments]:
    """Plans of little peak: of the least budgets that the chain finds any for, and one lowered."""
    passes, chain = Passes(problem), Chain(problem)
    plans: list[Segments] = [()]
    low, high = 0, peak_of(problem, ())
    for _ in range(_SEARCHES):
        middle = (low + high) // 2
        found = chain.shortest(middle, rounded_up=True)
        if found is None:
            low = middle
        else:
            plans.append(found)
            high = min(middle, peak_of(problem, found))
    start = min(plans, key=lambda plan: peak_of(problem, plan))
    return [*plans, lowered(passes, Plan.of(start, passes.count)).segments]


def _exact(problem: Problem, budget: int) -> tuple[Segments | None, bool]:
    """What a solver finds, and whether there is nothing better."""
    for allowed in (budget, int(budget * (1 - _TOLERANCE))):
        formulation = Formulation(problem, allowed)
        solution = solve(formulation.program, nodes=NODES, seconds=SECONDS)
        if solution.columns is None:
            return None, solution.proven and allowed == budget
        found = formulation.segments(solution)
        if peak_of(problem, found) <= budget:
            return found, solution.proven
    return None, False


def _nearly(problem: Problem, budget: int) -> list[Segments]:
    """What the chain finds around a budget, polished; nothing where nothing is inside it."""
    passes = Passes(problem)
    found = list(_cut(passes, Chain(problem), budget))
    nearest = min(found, key=passes.peak)
    inside = [_relaxed(passes, plan, budget) for plan in found if passes.peak(plan) <= budget]
    best = polished(passes, min(inside, key=passes.cost, default=nearest), budget)
    if passes.peak(best) > budget:
        best = polished(passes, lowered(passes, nearest), budget)
    if passes.peak(best) > budget:
        return []
    segments = _relaxed(passes, best, budget).segments
    return [segments] if peak_of(problem, segments) <= budget else []


def _cut(passes: Passes, chain: Chain, budget: int) -> Iterator[Plan]:
    """The chain's plans for a budget and several around it, inside of it or not."""
    nothing = Plan.of((), passes.count)
    yield nothing
    safe = chain.shortest(budget, rounded_up=True)
    if safe is not None:
        yield Plan.of(safe, passes.count)
    low, high, asked = 0, passes.peak(nothing), budget
    whole = high
    for _ in range(_TRIES):
        found = chain.shortest(asked)
        plan = nothing if found is None else Plan.of(found, passes.count)
        yield plan
        if found is None or passes.peak(plan) <= budget:
            low = asked
            asked = (low + high) // 2
            asked = min(int(low * _WIDER), asked) if high == whole else asked
        else:
            high = asked
            asked = (low + high) // 2 if low else int(high * _CLOSER)


def _relaxed(passes: Passes, plan: Plan, budget: int) -> Plan:
    """Keep what need not be computed again after all: whole segments, then parts, dearest first."""
    count = passes.count
    parts = tuple((int(place), int(place) + 1) for place in plan.again.nonzero()[0])
    for spans in (plan.segments, parts):
        for first, after in sorted(spans, key=lambda s: -passes.seconds[s[0] : s[1]].sum()):
            again, joined = plan.again.copy(), plan.joined.copy()
            again[first:after] = joined[first : min(count, after + 1)] = False
            fewer = Plan(again, joined)
            if passes.peak(fewer) <= budget:
                plan = fewer
    return plan
