"""Determinants inside a budget: the right answer, with an error bar, in the memory it is given.

::

    sign, logabs = snugly.linalg.slogdet(a, memory="256MiB")
    print(snugly.linalg.plan(a.shape, a.dtype, memory="256MiB"))
"""

from snugly.linalg.determinant import det, slogdet
from snugly.linalg.plan import Plan, plan
from snugly.linalg.result import Determinant, LogDeterminant

__all__ = ["Determinant", "LogDeterminant", "Plan", "det", "plan", "slogdet"]
