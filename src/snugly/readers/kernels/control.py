"""Operators that move no data: `IsExpensive()` is false, so the executor runs them in passing.

identity_op.h, identity_n_op.h, reshape_op.h, shape_ops.h, constant_op.h, control_flow_ops.h,
function_ops.h, no_op.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import Behaviour, always, rule

if TYPE_CHECKING:
    from snugly.readers.node import Node

always(
    Behaviour(shares=(0,), expensive=False),
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Reshape",
    "Squeeze",
    "ExpandDims",
    "EnsureShape",
    "PlaceholderWithDefault",
    "DebugIdentityV2",
    "DebugGradientIdentity",
    "Enter",
    "RefEnter",
    "Exit",
    "NextIteration",
    "LoopCond",
    "_Retval",
)

always(Behaviour(shares=(0, 0), expensive=False), "Switch", "RefSwitch")

always(
    Behaviour(expensive=False),
    "Const",
    "HostConst",
    "ImmutableConst",
    "Shape",
    "ShapeN",
    "Size",
    "Rank",
    "NoOp",
    "VarHandleOp",
    "Placeholder",
    "_Arg",
    "Merge",
    "ControlTrigger",
    "Abort",
    "TensorListLength",
    "TensorListElementShape",
    "TensorListReserve",
    "EmptyTensorList",
    "BroadcastGradientArgs",
    "BroadcastArgs",
    "ConcatOffset",
)


@rule("IdentityN")
def sharing_all(node: Node) -> Behaviour:
    """Every output is its input."""
    return Behaviour(shares=tuple(range(len(node.outputs))), expensive=False)
