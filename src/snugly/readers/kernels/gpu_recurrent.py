"""cuDNN's recurrent layers: what it keeps for the gradient, and its workspace.

TensorFlow asks cuDNN for both sizes (cudnn_rnn_ops.cc), and cuDNN does not say how it arrives at
them. What it keeps is exact for the layers measured. The workspace was fitted to five layers on an
H200 with cuDNN 9 and is within 1 % of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, gpu_rule

if TYPE_CHECKING:
    from snugly.readers.node import Node

# Outputs of the layer, and inputs of its gradient, that hold what is kept.
RESERVE, HOST_RESERVE = 3, 4
RESERVE_INPUT = 11
RESERVE_ALIGNMENT = 256
FIXED = 8 << 20  # a workspace for matrix products, whatever the layer's size
WEIGHTS = 1.25  # of the parameters' bytes
STATES = 8  # of one step's
# Per mode, in bytes of the layer's output: what is kept, and what is worked on.
KEPT = {"lstm": 5, "gru": 6}
WORKED_ON = {"lstm": 5.0, "gru": 4.4}


def _sizes(node: Node, output: int) -> tuple[int, int]:
    """Bytes kept and bytes of workspace; `output` bytes is the whole sequence of states."""
    mode = str(node.attribute("rnn_mode") or "lstm")
    sequence, parameters, state = node.inputs[0], node.inputs[3], node.inputs[1]
    kept = KEPT.get(mode, KEPT["lstm"]) * output + RESERVE_ALIGNMENT
    worked_on = WORKED_ON.get(mode, WORKED_ON["lstm"]) * output
    weights = WEIGHTS * parameters.bytes
    return kept, FIXED + round(worked_on + weights) + sequence.bytes + STATES * state.bytes


@gpu_rule("CudnnRNNV2", "CudnnRNNV3")
def layer(node: Node) -> Behaviour:
    """Keeps its gates for the gradient even when nobody will ask: Keras always trains here."""
    output = node.outputs[0]
    if output.shape is None or node.inputs[0].shape is None:
        return PLAIN
    kept, workspace = _sizes(node, output.bytes)
    return Behaviour(absent=(RESERVE, HOST_RESERVE), extra=(kept,), workspace=(workspace,))


@gpu_rule("CudnnRNNBackpropV3")
def gradient(node: Node) -> Behaviour:
    """The same workspace again, and what the layer kept."""
    output = node.inputs[5]
    if output.shape is None or node.inputs[0].shape is None:
        return PLAIN
    _, workspace = _sizes(node, output.bytes)
    return Behaviour(reads_extra=(RESERVE_INPUT,), workspace=(workspace,))
