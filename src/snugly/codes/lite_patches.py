"""Rewriting `.tflite` files, in patches or for another input size: from SNG575."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG575",
        "The .tflite file cannot be rewritten",
        "The model keeps its constants behind the flatbuffer, or would grow over 2 GiB, which"
        " offsets in the file cannot reach.",
        "Convert the model in parts, or quantise it first.",
    ),
    Code(
        "SNG576",
        "The input size cannot be changed",
        "The model has no input of four dimensions, or several of them and none was named, or the"
        " size that was asked for is not one of an image.",
        "Give a positive height and width, and name the input where there are several.",
    ),
    Code(
        "SNG577",
        "The model does not work at this input size",
        "An operator has a size written into it: a RESHAPE or a dense layer for a fixed number of"
        " values, a pooling window larger than what is left, a constant that no longer matches."
        " LiteRT would resize the input without complaint, and give answers of another meaning.",
        "Build and convert the model for this size, and train it for it; global pooling instead of"
        " Flatten makes a model that can be resized.",
    ),
)
