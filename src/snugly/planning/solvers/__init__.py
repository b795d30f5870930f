"""Solvers of other people's making, each behind the same small description of a problem."""

from __future__ import annotations

from snugly.planning.solvers.highs import solve
from snugly.planning.solvers.program import Program, Row, Solution

__all__ = ["Program", "Row", "Solution", "solve"]
