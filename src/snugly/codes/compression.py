"""Smaller models to train, pruned or taught by others: from SNG530."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG530",
        "This cannot be pruned as asked",
        "The request has neither a share of channels to keep nor a budget, or both; or it names a"
        " criterion or a layer that does not exist; or two layers of the model share a weight.",
        "Say `snugly.training.prune(model, keep=0.5)`.",
    ),
    Code(
        "SNG531",
        "A layer or model cannot be made anew",
        "A pruned model is made of new layers. A layer whose `get_config` does not say all that its"
        " constructor takes, and a model of a class that does more than run its layers, cannot be"
        " made a second time.",
        "Give the layer a complete `get_config`, or take the part without it:"
        " `keras.Model(model.inputs, tensor)`.",
    ),
    Code(
        "SNG532",
        "There is nothing to prune",
        "Every channel of the model leaves it, is protected, or goes through a layer whose channels"
        " are not known.",
        "Protect less; or prune a part of the model that has layers behind one another: the message"
        " says of each layer why it is left alone.",
    ),
    Code(
        "SNG533",
        "No pruned model fits",
        "Even with one channel of every group, a step is predicted to need more than the budget.",
        "Give the memory that the message names, or a smaller batch size.",
    ),
    Code(
        "SNG534",
        "This teacher cannot teach this student",
        "A student learns from the outputs of its teacher: both have one output, of the same shape,"
        " and what it means (classes, logits, numbers) is known from the loss and the last layer.",
        "Give `distillation_loss=`, or a teacher and a student with one output of the same shape.",
    ),
    Code(
        "SNG535",
        "A distiller is not saved as a whole",
        "What is worth keeping is the student. The teacher has its own file, and the distiller"
        " itself nothing but two numbers.",
        'Say `distiller.save("student.keras")`, which saves the student.',
    ),
)
