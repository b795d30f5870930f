"""Jacobians and their products inside a budget.

::

    J = snugly.jacobian(f, x, memory="512MiB")
    print(snugly.jacobians.plan(f, x, memory="512MiB"))
    K = snugly.jacobians.ntk(model, x1, x2, memory="512MiB")
"""

from snugly.jacobians.diagonal import diagonal
from snugly.jacobians.kernel import ntk
from snugly.jacobians.matrix import JacobianWarning, jacobian, plan
from snugly.jacobians.plan import Plan
from snugly.jacobians.products import gauss_newton_vp, hessian, hessian_vp, jvp, vjp
from snugly.jacobians.streaming import Streamed

__all__ = [
    "JacobianWarning",
    "Plan",
    "Streamed",
    "diagonal",
    "gauss_newton_vp",
    "hessian",
    "hessian_vp",
    "jacobian",
    "jvp",
    "ntk",
    "plan",
    "vjp",
]
