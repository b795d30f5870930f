"""What of a training step to compute again, so that it fits."""

from __future__ import annotations

from snugly.planning.recomputing.check import peak_of, require_sound, seconds_of
from snugly.planning.recomputing.extract import problem_of
from snugly.planning.recomputing.problem import Gradient, Part, Problem, Segments, Value
from snugly.planning.recomputing.search import cheapest, least

__all__ = [
    "Gradient",
    "Part",
    "Problem",
    "Segments",
    "Value",
    "cheapest",
    "least",
    "peak_of",
    "problem_of",
    "require_sound",
    "seconds_of",
]
