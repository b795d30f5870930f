"""LiteRT (TensorFlow Lite) and TFLite Micro: SNG788 to SNG792."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG788",
        "The arena of a microcontroller is too small",
        "TFLite Micro works in one block of memory, the arena, and part of the model did not fit"
        " into it. 'missing' in its message is what was lacking at that point, not in all.",
        "Make `kTensorArenaSize` larger, until `arena_used_bytes()` says what is really used; keep"
        " it aligned (`alignas(16)`).",
    ),
    Code(
        "SNG789",
        "An interpreter could not prepare its tensors",
        "AllocateTensors failed. Its name suggests memory, but the cause is in the line before it:"
        " most often a shape, an operation or a delegate, sometimes memory.",
        "Read the line above; resize inputs before allocating; try without delegates.",
    ),
    Code(
        "SNG790",
        "A model needs an operation that the interpreter does not have",
        "The model uses an operation, or a version of one, that is not registered: a custom op,"
        " TensorFlow's Flex ops, or one that the micro resolver was not given room or order for."
        " Not memory.",
        "Register the op (a larger number in `MicroMutableOpResolver<N>`, the Flex delegate), or"
        " convert the model with built-in ops only.",
    ),
    Code(
        "SNG791",
        "A mobile GPU had no memory for the model",
        "The GPU delegate could not get memory from OpenCL, or from the GPU's driver.",
        "Use float16, a smaller input, or XNNPACK on the CPU.",
    ),
    Code(
        "SNG792",
        "A model file is beyond 2 GB, or its sizes overflow",
        "A flatbuffer cannot exceed 2 GB; or a tensor's size overflows, which a damaged or hostile"
        " file does. More memory does not help.",
        "Quantise or split the model; check the shapes that are set by `resize_tensor_input`.",
    ),
)
