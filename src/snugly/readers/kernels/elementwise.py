"""Operators that compute each element by itself: the result may go where an operand was.

cwise_ops_common.h: unary kernels forward their input, binary ones the first operand of the output's
size, else the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import Behaviour, always, rule, same_buffer

if TYPE_CHECKING:
    from snugly.readers.node import Node

UNARY = """
Abs Acos Acosh Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e Ceil Conj Cos
Cosh Dawsn Digamma Elu Erf Erfc Erfinv Exp Expint Expm1 Floor FresnelCos FresnelSin Gelu Inv
Invert IsFinite IsInf IsNan LeakyRelu Lgamma Log Log1p LogicalNot Mish Ndtri Neg Reciprocal
Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Softplus Softsign Spence Sqrt Square
Tan Tanh _UnaryOpsComposition FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars
""".split()  # noqa: SIM905 - a line for each name would fill pages

BINARY = """
Add AddV2 ApproximateEqual Atan2 BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan Equal FloorDiv
FloorMod Greater GreaterEqual Igamma IgammaGradA Igammac LeftShift Less LessEqual LogicalAnd
LogicalOr Maximum Minimum Mod Mul MulNoNan NextAfter NotEqual Polygamma Pow RealDiv
RightShift SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta EluGrad
GeluGrad InvGrad LeakyReluGrad ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad
SigmoidGrad SoftplusGrad SoftsignGrad SqrtGrad TanhGrad
""".split()  # noqa: SIM905 - a line for each name would fill pages


@rule(*UNARY, *BINARY)
def elementwise(node: Node) -> Behaviour:
    """The first operand that is free, else the second."""
    return Behaviour(takes=(same_buffer(node, 0, 0, 1),))


@rule("AddN", "AccumulateNV2", "ClipByValue", "Snapshot", "ZerosLike", "OnesLike")
def any_operand(node: Node) -> Behaviour:
    """aggregate_ops.cc, cwise_op_clip.cc, snapshot_op.cc, constant_op.cc: any that is free."""
    return Behaviour(takes=(same_buffer(node, 0, *range(len(node.inputs))),))


@rule("BiasAdd", "BiasAddV1")
def bias_add(node: Node) -> Behaviour:
    """bias_op.cc: never where the bias was."""
    return Behaviour(takes=(same_buffer(node, 0, 0),))


@rule("Select", "SelectV2")
def select(node: Node) -> Behaviour:
    """cwise_op_select.cc forwards either branch."""
    return Behaviour(takes=(same_buffer(node, 0, 1, 2),))


@rule("Cast")
def cast(node: Node) -> Behaviour:
    """cast_op.cc: the same type hands its input on; another allocates, though sizes may agree."""
    if node.inputs[0].dtype == node.outputs[0].dtype:
        return Behaviour(shares=(0,))
    return Behaviour()


always(Behaviour(shares=(0,)), "CheckNumerics", "CheckNumericsV2", "Bitcast")
