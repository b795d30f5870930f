"""Softmax and its losses, batch normalisation, pooling, recurrent cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, always, rule, same_buffer
from snugly.readers.kernels.onednn import runs_onednn, runs_own_cpu_kernel

if TYPE_CHECKING:
    from snugly.readers.node import Node

HALVES = {"float16", "bfloat16"}
RESERVE = 5  # output of FusedBatchNormV3
# The last version of TensorFlow whose xent_op.cc asked for scratch of the logits' shape on CPUs;
# measured with 2.16 to 2.21.
WIDE_SCRATCH = (2, 16)


@rule("Softmax", "LogSoftmax")
def softmax(node: Node) -> Behaviour:
    """softmax_op.cc, mkl_softmax_op.cc."""
    return Behaviour(takes=(same_buffer(node, 0, 0),))


@rule("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(node: Node) -> Behaviour:
    """sparse_xent_op.cc: a number an example; the gradient in place of the logits."""
    return Behaviour(takes=((), same_buffer(node, 1, 0)), workspace=(node.outputs[0].bytes,))


@rule("SoftmaxCrossEntropyWithLogits")
def cross_entropy(node: Node) -> Behaviour:
    """xent_op.cc: as the sparse one, but older CPU kernels want scratch as large as the logits."""
    is_wide = node.machine.device == "cpu" and node.machine.tensorflow <= WIDE_SCRATCH
    scratch = node.outputs[1 if is_wide else 0]
    return Behaviour(takes=((), same_buffer(node, 1, 0)), workspace=(scratch.bytes,))


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(node: Node) -> Behaviour:
    """fused_batch_norm_op.cc: the sixth output is a GPU's reserve space, empty here."""
    return Behaviour(absent=(RESERVE,) if len(node.outputs) > RESERVE else ())


@rule("_FusedBatchNormEx")
def batch_norm_and_relu(node: Node) -> Behaviour:
    """mkl_fused_batch_norm_op.cc: training keeps where the Relu cut, half a byte an element."""
    if runs_onednn(node) and node.attribute("is_training"):
        return Behaviour(absent=(RESERVE,), extra=(node.outputs[0].elements // 2,))
    return Behaviour(absent=(RESERVE,))


always(Behaviour(absent=(3, 4), reads_extra=(RESERVE,)), "_FusedBatchNormGradEx")


@rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def batch_norm_gradient(node: Node) -> Behaviour:
    """The last two outputs are placeholders; TensorFlow's own kernel sums halves in float32."""
    absent = (3, 4)
    if not runs_own_cpu_kernel(node):
        return Behaviour(absent=absent)
    workspace = [node.inputs[2].bytes]
    if node.inputs[0].dtype in HALVES:
        workspace.append(node.outputs[0].elements * 4)
    return Behaviour(workspace=tuple(workspace), absent=absent)


@rule("MaxPool", "MaxPool3D", "MaxPoolV2")
def max_pool(node: Node) -> Behaviour:
    """mkl_maxpooling_op.cc: a second output, a byte an element, tells where the maxima were."""
    if runs_onednn(node):
        return Behaviour(extra=(node.outputs[0].elements,))
    return PLAIN


@rule("MaxPoolGrad", "MaxPoolGradV2")
def max_pool_gradient(node: Node) -> Behaviour:
    """maxpooling_op.cc pools again for the places of the maxima (int64).

    The values are pooled again as well. They go where the output was if nobody else holds that, but
    usually the next layer's gradient still does, so a copy is counted.
    """
    if runs_onednn(node):
        return Behaviour(reads_extra=(1,))
    if not runs_own_cpu_kernel(node):
        return PLAIN
    output = node.inputs[1]
    return Behaviour(
        takes=(same_buffer(node, 0, 0),), workspace=(output.bytes, output.elements * 8)
    )


@rule("MaxPool3DGrad")
def max_pool_3d_gradient(node: Node) -> Behaviour:
    """pooling_ops_3d.cc looks for the maxima again, without scratch."""
    return Behaviour(reads_extra=(1,)) if runs_onednn(node) else PLAIN


@rule("MaxPoolGradWithArgmax")
def max_pool_gradient_at(node: Node) -> Behaviour:
    """maxpooling_op.cc: the places are given."""
    return Behaviour(takes=(same_buffer(node, 0, 0),))


@rule("FractionalMaxPoolGrad")
def fractional_max_pool_gradient(node: Node) -> Behaviour:
    """fractional_max_pool_op.cc: as MaxPoolGrad."""
    return Behaviour(takes=(same_buffer(node, 0, 0),), workspace=(node.inputs[1].elements * 8,))


@rule("FractionalAvgPoolGrad")
def fractional_average_pool_gradient(node: Node) -> Behaviour:
    """fractional_avg_pool_op.cc sums in double."""
    return Behaviour(workspace=(node.outputs[0].elements * 8,))


@rule("LSTMBlockCell")
def lstm_cell(node: Node) -> Behaviour:
    """rnn/lstm_ops.cc: input and state side by side, and the four gates, as scratch."""
    takes = (same_buffer(node, 0, 2), (), (), same_buffer(node, 3, 1), (), (), ())
    return Behaviour(takes=takes, workspace=_lstm_scratch(node, 0, 3))


@rule("BlockLSTM", "BlockLSTMV2")
def lstm_sequence(node: Node) -> Behaviour:
    """The same scratch for all steps."""
    return Behaviour(workspace=_lstm_scratch(node, 1, 4))


def _lstm_scratch(node: Node, sequence: int, weights: int) -> tuple[int, ...]:
    inputs, kernel = node.inputs[sequence], node.inputs[weights]
    if inputs.shape is None or kernel.shape is None:
        return ()
    batch, item = inputs.shape[-2], inputs.item_bytes
    return batch * kernel.shape[0] * item, batch * kernel.shape[1] * item


@rule("GRUBlockCell")
def gru_cell(node: Node) -> Behaviour:
    """rnn/gru_ops.cc: input and state side by side, twice, and two gates; the state in place."""
    inputs, state = node.inputs[0], node.inputs[1]
    if inputs.shape is None or state.shape is None:
        return PLAIN
    both = inputs.bytes + state.bytes
    return Behaviour(
        takes=((), (), (), same_buffer(node, 3, 1)), workspace=(both, both, 2 * state.bytes)
    )
