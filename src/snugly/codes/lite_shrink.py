"""Making `.tflite` files smaller: from SNG566."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG566",
        "The model does not fit, however it is planned",
        "The smallest arena that was found is larger than the budget. The largest tensors that must"
        " exist at one moment set a limit that no plan goes below.",
        "Give the memory that is named, permit more with `--allow`, or write the smallest that was"
        " found with `--best-effort`.",
    ),
    Code(
        "SNG567",
        "The model is compiled for an accelerator",
        "A compiler for an NPU has fixed where the tensors lie that it shares with its own code."
        " Moving them would break the model.",
        "Shrink the model before it is compiled.",
    ),
    Code(
        "SNG568",
        "The file cannot be rewritten",
        "The file has more than 2 GiB, keeps its constants outside of the flatbuffer, or was"
        " written with a later schema than is known here.",
        "Convert the model again; what runs on a microcontroller is far smaller.",
    ),
    Code(
        "SNG569",
        "A header can be written for TFLite Micro only",
        "`--emit-header` writes the size of the arena and the offsets of tensors; LiteRT chooses"
        " its own while it runs.",
        "Leave `--emit-header` out, or give `--runtime micro`.",
    ),
    Code(
        "SNG570",
        "The model reads what nothing has written",
        "An operator of the file takes a tensor that no operator before it has made, or makes"
        " what it takes. What such a model computes depends on what lies in memory.",
        "The file is damaged, or its converter was wrong. Convert the model again.",
    ),
    Code(
        "SNG571",
        "The samples are not inputs of the model",
        "The file that `--samples` names cannot be read, or its arrays have other names, shapes or"
        " types than the inputs of the model. A `.npy` holds the one input, a `.npz` an array for"
        " each, by name; the first axis counts the samples.",
        "Write the inputs with `numpy.save` or `numpy.savez`, prepared as the model expects them.",
    ),
    Code(
        "SNG572",
        "The model cannot be converted to .tflite",
        "TensorFlow's converter has no TFLite operators for something in the model, or does not"
        " know the shapes of its inputs, or the model keeps variables between calls.",
        "Replace the layers that are named, and build the model with inputs of known shapes.",
    ),
    Code(
        "SNG573",
        "A converter, quantiser or interpreter failed",
        "The work was done in a process of its own, which refused the model, crashed, or took too"
        " long. What it said last is in the message.",
        "Check the model with `snugly predict`; where it is sound, convert it with another version"
        " of TensorFlow.",
    ),
)
