"""Training that fits: SNG538, SNG539, and recomputation in the backward pass, SNG54x."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG538",
        "These are not batches",
        "A training step is planned for batches of one size. The dataset gives single examples, or"
        " batches of open size; or a batch size was given beside a dataset, which has its own:"
        " Keras 3 ignores such a `batch_size` silently, so that training takes the memory that it"
        " took before.",
        "Batch the dataset: `dataset.batch(32, drop_remainder=True)`, and leave `batch_size` out.",
    ),
    Code(
        "SNG539",
        "No training step was found that fits",
        "Everything that is allowed was tried: parts computed again, the batch in pieces, and more"
        " where the user allowed it. The smallest is predicted to be above the budget.",
        'Give the memory that the message names, or allow more: `allow="changes-training"`.',
    ),
    Code(
        "SNG540",
        "Nothing to compute again",
        "`snugly.checkpoint` takes a Keras layer or model, a function on tensors, or a sequence of"
        " these. What it was given is none of them.",
        "Give a layer, a function, or a list of layers: `snugly.checkpoint(model.layers[3])`.",
    ),
    Code(
        "SNG541",
        "Variables are created inside a checkpointed block",
        "A block runs twice, and a variable that it creates would be created twice. This also"
        " happens with a layer that is not built yet and builds its parts only as it runs.",
        "Create variables and layers outside; call a layer once, or its `build`, before training.",
    ),
    Code(
        "SNG542",
        "A checkpointed block did something else the second time",
        "The block is repeated in the backward pass, and there it read, drew or changed other"
        " things than in the forward pass. A counter or a random number of Python's that decides"
        " what is computed is the usual cause. No gradient was given, since it would be wrong.",
        "Let what the block does depend on its arguments alone.",
    ),
    Code(
        "SNG543",
        "Part of a checkpointed block cannot be repeated",
        "The block holds an operation with a hidden state, and its result in the forward pass is"
        " not enough for the gradient or cannot be reached: `tf.py_function`, `tf.random.gamma`,"
        " or a random operation with a hidden state inside a loop, a branch or a called function.",
        "Draw from a `keras.random.SeedGenerator` or a `tf.random.Generator`, or leave that part"
        " out of the block.",
    ),
    Code(
        "SNG544",
        "A checkpointed function cannot be part of a Keras graph",
        "A model that is built from `keras.Input` consists of layers; a function called on Keras's"
        " symbolic tensors leaves its single operations in it, and none would be recomputed.",
        "Give `snugly.checkpoint` a layer or a list of layers, or wrap the function in"
        " `keras.layers.Lambda` and checkpoint that.",
    ),
    Code(
        "SNG545",
        "A checkpointed block cannot be traced",
        "Where there is no graph, a checkpointed block is traced like a `tf.function`. This one"
        " asks for the values of its tensors (`.numpy()`, `int(x)`), which a trace has not got.",
        "Use TensorFlow's operations on tensors in the block, or leave that part out of it.",
    ),
    Code(
        "SNG546",
        "These segments do not fit the model",
        "A segment names a layer that the model has not got, or a layer is in two segments, or the"
        " model has no graph of layers (a subclassed model, a `Sequential` that is not built).",
        "Give lists of the model's own layers or their names, each layer once; checkpoint the"
        " parts of a subclassed model one by one.",
    ),
    Code(
        "SNG547",
        "A segment cannot run as one piece",
        "A segment is computed from what goes into it. Something outside this one depends on it,"
        " and something in it depends on that: the two would wait for each other.",
        "Take the layers between into the segment, or make two of it.",
    ),
    Code(
        "SNG548",
        "This model cannot be trained in micro-batches",
        "Adding up the gradients of pieces of a batch gives that of the whole batch where the loss"
        " is a mean over examples. A model with a `train_step` or `compute_loss` of its own, or a"
        " loss that is summed, may do something else.",
        "Compile with a loss of the default reduction, or leave micro-batches out.",
    ),
    Code(
        "SNG549",
        "This cannot be shrunk as asked",
        "The request has no budget, names a safety that does not exist, or is for a model that"
        " cannot be changed in this way.",
        'Say `snugly.shrink(model, memory="4GiB", batch_size=64, allow="same-result")`.',
    ),
)
