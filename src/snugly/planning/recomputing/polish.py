"""A plan made cheaper by trying small changes to it, tens of thousands of them.

Simulated annealing: a part more or less, a cut more or less, a stretch set or cleared, a border
moved by one. A change that costs time or goes over the budget is taken now and then, ever more
rarely, because the way to a better plan often leads over a worse one. The numbers are drawn from a
fixed seed: the same step and budget give the same plan.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final

from snugly.planning.recomputing.passes import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.planning.recomputing.passes import Flags, Passes

MOVES: Final = 20_000
"""Changes that are tried. On ResNet152 and a transformer of 24 layers this takes about 3 s."""
_EACH: Final = 250
"""In rows shorter than 80 parts fewer: so many for each part."""
_WORK: Final = 30_000_000
"""In rows longer than theirs fewer: so many values, gradients and parts are looked at in all."""
_HOT, _COLD = 0.3, 0.003
"""How much worse a plan may be and yet be taken one time in e, in parts of mean cost, at the
beginning and at the end. A hotter start lost what the chain had found, a colder one stayed there
(ResNet152 and a transformer of 24 layers, budgets of 40 to 90 %)."""
_PENALTY: Final = 1.5
"""What being over the budget by its own size counts as, in forward passes. At 3 plans came out up
to a twentieth dearer."""
_LONGEST: Final = 12
"""Parts that are set or cleared at once, at most."""


def polished(passes: Passes, plan: Plan, budget: int, moves: int = MOVES) -> Plan:
    """The cheapest plan inside the budget that was come across; as it was where none was."""
    total = max(float(passes.seconds.sum()), 1e-30)

    def judged(one: Plan) -> tuple[float, float]:
        cost, over = passes.cost(one), passes.peak(one) / max(1, budget) - 1
        return cost / total + _PENALTY * max(0.0, over), cost if over <= 0 else math.inf

    return _annealed(passes, plan, judged, moves)


def lowered(passes: Passes, plan: Plan, moves: int = MOVES) -> Plan:
    """The plan with the least peak that was come across, whatever it costs."""
    whole = max(1, passes.peak(plan))

    def judged(one: Plan) -> tuple[float, float]:
        peak = passes.peak(one)
        return peak / whole, peak

    return _annealed(passes, plan, judged, moves)


def _annealed(
    passes: Passes, plan: Plan, judged: Callable[[Plan], tuple[float, float]], moves: int
) -> Plan:
    """The best plan that was come across.

    `judged` says of a plan how bad it is on the way, and how good where it is to be given out: less
    is better in both.
    """
    chance = random.Random(0)  # noqa: S311  # nothing to guess
    moves = min(moves, _EACH * passes.count, _WORK // max(1, passes.length))
    now, least = judged(plan)
    best = plan
    for move in range(moves):
        changed = _changed(plan, passes.fixed, chance)
        if changed is None:
            continue
        bad, good = judged(changed)
        heat = _HOT * (_COLD / _HOT) ** (move / moves) / passes.count
        if bad <= now or chance.random() < math.exp((now - bad) / heat):
            plan, now = changed, bad
            if good < least:
                best, least = plan, good
    return best


def _changed(plan: Plan, fixed: Flags, chance: random.Random) -> Plan | None:
    """A plan that differs a little; None where the draw changes nothing."""
    again, joined = plan.again.copy(), plan.joined.copy()
    place, kind = chance.randrange(len(again)), chance.random()
    if kind < 0.3:  # noqa: PLR2004  # three in ten: a part more or less
        _set(again, joined, place, place + 1, chance, on=not again[place])
    elif kind < 0.55:  # noqa: PLR2004  # a cut more or less
        joined[place] = not joined[place]
    elif kind < 0.8:  # noqa: PLR2004  # a stretch
        after = min(len(again), place + chance.randint(2, _LONGEST))
        _set(again, joined, place, after, chance, on=chance.random() < 0.5)  # noqa: PLR2004
    elif place and again[place] != again[place - 1]:  # a border
        again[place - 1 : place + 1] = again[place - 1 : place + 1][::-1].copy()
        joined[place - 1 : place + 2] = chance.random() < 0.8  # noqa: PLR2004
    again &= ~fixed
    joined &= again
    joined[0] = False
    joined[1:] &= again[:-1]
    if (again == plan.again).all() and (joined == plan.joined).all():
        return None
    return Plan(again, joined)


def _set(  # noqa: PLR0913  # the two answers of a plan, and a stretch
    again: Flags, joined: Flags, first: int, after: int, chance: random.Random, *, on: bool
) -> None:
    """Compute a stretch again, with its neighbours or apart from them; or keep it."""
    again[first:after] = joined[first:after] = on
    if on:
        joined[first] = chance.random() < 0.6  # noqa: PLR2004
        joined[after : after + 1] |= chance.random() < 0.4  # noqa: PLR2004
