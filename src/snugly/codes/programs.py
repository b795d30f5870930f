"""Reading a program and predicting its memory: SNG1xx."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG101",
        "The program does not fit",
        "Even the low end of the predicted peak is above what the device offers.",
        "The hints below the message name changes that would make it fit, by prediction alone.",
    ),
    Code(
        "SNG102",
        "The program may not fit",
        "The budget lies inside the range of the prediction: some runs would fit, some would not.",
        "Treat it as not fitting, or measure it. The hints name changes that would surely fit.",
    ),
    Code(
        "SNG103",
        "A dimension is not known",
        "The program has a dimension, such as the batch or the length of a sequence, that the"
        " prediction depends on. Snugly asks for it; it never guesses.",
        "Give `--batch-size N`, or `--dimension NAME=N` for any other.",
    ),
    Code(
        "SNG104",
        "The program was not found",
        "The path does not exist, or the module or script has no such name.",
        "Give a file (`model.keras`, a SavedModel folder, `model.tflite`) or `script.py:name`.",
    ),
    Code(
        "SNG105",
        "The program cannot be read",
        "The file is damaged, or is not of the kind its name says.",
        "Save the model again, or give the script that builds it as `script.py:name`.",
    ),
    Code(
        "SNG106",
        "The program carries code",
        "The file contains Python code (a Lambda layer, for instance) that loading it would run."
        " A model file is untrusted input, so Snugly does not run it unasked.",
        "If you trust the file, allow it: `--allow-code`.",
    ),
    Code(
        "SNG107",
        "The program cannot be predicted",
        "Snugly read the program, but something in it has a size that it cannot derive.",
        "The message names the part. Please report it with a small example.",
    ),
    Code(
        "SNG108",
        "The program failed while it was built",
        "The script or builder that was named raised an error of its own.",
        "Run the script by itself first; the message names the line that failed.",
    ),
    Code(
        "SNG109",
        "The strategy cannot be used",
        "How training is spread over devices was not understood, goes with nothing that was asked"
        " for, or is of a kind whose memory Snugly does not know.",
        "Write `mirrored:4`, `multiworker:2x4` (workers and devices of each) or"
        " `parameter-server:4x2` (workers and servers), together with training.",
    ),
    Code(
        "SNG110",
        "The dataset does not say what a batch is",
        "A `tf.data.Dataset` was given as an example. Snugly reads what it says of its elements and"
        " draws none; the size of a batch, or that its elements are batches at all, is not in it.",
        "Give `batch_size=32` beside it, or batch it: `dataset.batch(32, drop_remainder=True)`.",
    ),
)
