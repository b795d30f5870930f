"""Operators that work on variables: they change buffers in place, so what matters is whose.

training_op_helpers.h: before a variable is changed in place, it is copied if somebody still holds
the old value (PrepareToUpdateVariable). A sparse change turns the variable to copy-on-read for good
(EnsureSparseVariableAccess): from then on every plain read of it allocates a copy.
"""

from __future__ import annotations

from snugly.readers.kernels.behaviour import PLAIN, always

# Per operator, the inputs that are variables it changes.
UPDATED: dict[str, tuple[int, ...]] = {
    "AssignAddVariableOp": (0,),
    "AssignSubVariableOp": (0,),
    "ResourceStridedSliceAssign": (0,),
    "ResourceApplyAdaMax": (0, 1, 2),
    "ResourceApplyAdadelta": (0, 1, 2),
    "ResourceApplyAdagrad": (0, 1),
    "ResourceApplyAdagradV2": (0, 1),
    "ResourceApplyAdam": (0, 1, 2),
    "ResourceApplyAdamWithAmsgrad": (0, 1, 2, 3),
    "ResourceApplyAddSign": (0, 1),
    "ResourceApplyCenteredRMSProp": (0, 1, 2, 3),
    "ResourceApplyFtrl": (0, 1, 2),
    "ResourceApplyFtrlV2": (0, 1, 2),
    "ResourceApplyGradientDescent": (0,),
    "ResourceApplyKerasMomentum": (0, 1),
    "ResourceApplyMomentum": (0, 1),
    "ResourceApplyPowerSign": (0, 1),
    "ResourceApplyProximalAdagrad": (0, 1),
    "ResourceApplyProximalGradientDescent": (0,),
    "ResourceApplyRMSProp": (0, 1, 2),
}

# The same for operators that change some rows only.
UPDATED_SPARSELY: dict[str, tuple[int, ...]] = {
    "ResourceScatterAdd": (0,),
    "ResourceScatterDiv": (0,),
    "ResourceScatterMax": (0,),
    "ResourceScatterMin": (0,),
    "ResourceScatterMul": (0,),
    "ResourceScatterNdAdd": (0,),
    "ResourceScatterNdSub": (0,),
    "ResourceScatterNdUpdate": (0,),
    "ResourceScatterSub": (0,),
    "ResourceScatterUpdate": (0,),
    "ResourceSparseApplyAdadelta": (0, 1, 2),
    "ResourceSparseApplyAdagrad": (0, 1),
    "ResourceSparseApplyAdagradV2": (0, 1),
    "ResourceSparseApplyFtrl": (0, 1, 2),
    "ResourceSparseApplyFtrlV2": (0, 1, 2),
    "ResourceSparseApplyKerasMomentum": (0, 1),
    "ResourceSparseApplyMomentum": (0, 1),
    "ResourceSparseApplyProximalAdagrad": (0, 1),
    "ResourceSparseApplyRMSProp": (0, 1, 2),
}


def updated_variables(operator: str) -> tuple[int, ...]:
    """The inputs (positions of handles) whose variables this operator changes in place."""
    return UPDATED.get(operator) or UPDATED_SPARSELY.get(operator, ())


def makes_copy_on_read(operator: str) -> bool:
    """Whether its variables are copied at every plain read once this operator has run."""
    return operator in UPDATED_SPARSELY


always(
    PLAIN,
    *UPDATED,
    *UPDATED_SPARSELY,
    "AssignVariableOp",
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VariableShape",
)
