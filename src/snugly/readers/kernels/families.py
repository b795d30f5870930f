"""Rules by family."""

from snugly.readers.kernels.behaviour import Behaviour, rule, same_buffer
from snugly.readers.node import Node

SHARING = Behaviour(shares=(0,), expensive=False)


@rule(
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Reshape",
    "Squeeze",
    "ExpandDims",
    "EnsureShape",
    "PlaceholderWithDefault",
    "Bitcast",
    "CheckNumerics",
    "DebugIdentityV2",
)
def sharing(node: Node) -> Behaviour:
    return SHARING


@rule("IdentityN")
def sharing_all(node: Node) -> Behaviour:
    return Behaviour(shares=tuple(range(len(node.outputs))), expensive=False)


@rule(
    "Const",
    "Shape",
    "ShapeN",
    "Size",
    "Rank",
    "NoOp",
    "VarHandleOp",
    "Placeholder",
    "TensorListLength",
    "BroadcastGradientArgs",
    "TensorListElementShape",
    "TensorListReserve",
    "EmptyTensorList",
)
def passing(node: Node) -> Behaviour:
    return Behaviour(expensive=False)


ELEMENTWISE = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Cos Cosh Digamma Elu Erf Erfc Erfinv Exp Expm1 Floor Gelu Inv Reciprocal Lgamma Log Log1p LogicalNot Ndtri Neg Relu Relu6 LeakyRelu Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square Tan Tanh "
    "Add AddV2 Sub Mul Div RealDiv DivNoNan MulNoNan Xdivy Xlogy Xlog1py FloorDiv FloorMod TruncateDiv TruncateMod Maximum Minimum Pow SquaredDifference Atan2 Igamma "
    "Less LessEqual Greater GreaterEqual Equal NotEqual LogicalAnd LogicalOr "
    "EluGrad ReluGrad Relu6Grad LeakyReluGrad SeluGrad SigmoidGrad SoftplusGrad SoftsignGrad TanhGrad InvGrad ReciprocalGrad RsqrtGrad SqrtGrad "
    "ZerosLike OnesLike Softmax LogSoftmax AddN Snapshot BiasAdd ClipByValue"
).split()


@rule(*ELEMENTWISE)
def elementwise(node: Node) -> Behaviour:
    return Behaviour(takes=(same_buffer(node, 0, *range(len(node.inputs))),))


@rule("SparseSoftmaxCrossEntropyWithLogits")
def xent(node):
    return Behaviour(takes=((), same_buffer(node, 1, 0)), workspace=(node.outputs[0].bytes,))


@rule("Sum", "Mean", "Max", "Min", "Prod", "All", "Any")
def reduction(node):
    return Behaviour()
