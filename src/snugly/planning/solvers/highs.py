"""HiGHS, through SciPy."""

# SciPy ships no types; what it gives is Any.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.planning.solvers.program import Solution

if TYPE_CHECKING:
    from snugly.planning.solvers.program import Program

_OPTIMAL: Final = 0
_INFEASIBLE: Final = 2
"""`OptimizeResult.status` of scipy.optimize.milp (its documentation, SciPy 1.17)."""

_COST: Final = 1000.0
"""What all columns cost together, as HiGHS sees it: it takes a difference of 1e-6 for none
(mip_abs_gap, its documentation), and costs may be microseconds."""
_GAP: Final = 1e-6
"""By this share what is said to be the best may be dearer than the best."""


def solve(program: Program, *, nodes: int, seconds: float) -> Solution:
    """The columns that cost the least, looked for in so many branches and so much time.

    HiGHS computes with floating point: a row may be broken by a millionth of its largest number.
    Whoever needs it exactly checks what comes back.
    """
    # Loading SciPy's solvers takes 0.2 s and 30 MiB: only where one is asked.
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    count = len(program.costs)
    indices = [column for row in program.rows for column in row.columns]
    scale = [max(map(abs, row.columns.values()), default=1) for row in program.rows]
    numbers = [
        times / largest
        for row, largest in zip(program.rows, scale, strict=True)
        for times in row.columns.values()
    ]
    starts = np.cumsum([0, *(len(row.columns) for row in program.rows)])
    limits: Any = np.array(
        [row.limit / largest for row, largest in zip(program.rows, scale, strict=True)]
    )
    matrix = csr_array((numbers, indices, starts), shape=(len(program.rows), count))
    most: Any = np.array(program.most)
    costs = np.array(program.costs)
    found: Any = milp(
        costs * (_COST / max(float(costs.sum()), 1e-300)),
        integrality=np.array(program.decided, np.int8),
        bounds=Bounds(0, most),
        constraints=LinearConstraint(matrix, -np.inf, limits) if program.rows else (),
        options={"node_limit": nodes, "time_limit": seconds, "mip_rel_gap": _GAP},
    )
    columns = None if found.x is None else tuple(round(value) for value in found.x)
    return Solution(columns, found.status in {_OPTIMAL, _INFEASIBLE})
