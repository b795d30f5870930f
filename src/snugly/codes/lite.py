"""Reading `.tflite` files and predicting their arenas: SNG56x."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG560",
        "The .tflite file is damaged",
        "The file begins like a model but contradicts itself: it was cut short, or bytes of it"
        " were changed.",
        "Copy or convert the model again; compare its size with that of the original.",
    ),
    Code(
        "SNG561",
        "The file is not a .tflite model",
        "A LiteRT model carries the identifier TFL3 in its fifth to eighth byte; this file does"
        " not.",
        "Give the file that the converter wrote.",
    ),
    Code(
        "SNG562",
        "A tensor is declared larger than any memory",
        "The product of the dimensions that the file declares for a tensor is more than can be"
        " counted.",
        "The file is damaged, or its converter was wrong. Convert the model again.",
    ),
    Code(
        "SNG563",
        "The offline memory plan does not match the model",
        "The file carries offsets for TFLite Micro (metadata `OfflineMemoryAllocation`), but not"
        " one for each of its tensors, or negative ones. The interpreter would refuse it.",
        "Remove the metadata, or plan the model again.",
    ),
    Code(
        "SNG564",
        "The runtime does not run this program",
        "`litert`, `xnnpack` and `micro` run .tflite files; `tensorflow` and `xla` run Keras"
        " models, functions and SavedModels.",
        "Leave `--runtime` out, or convert the model to a .tflite file first.",
    ),
    Code(
        "SNG565",
        "The shapes of a .tflite file are fixed",
        "What was asked for (a batch size, open dimensions, a training step) would need other"
        " shapes than the file declares.",
        "Convert the model again with the shapes that are wanted.",
    ),
)
