"""Fitting what surrounds a model: SNG55x, GPU settings, input pipelines, detection configurations.

Training itself has the codes before these.
"""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG550",
        "The pipeline.config cannot be read",
        "The file is not protobuf text as the Object Detection API writes it: a brace is missing,"
        " a value stands where none can, or a setting is misspelt. The line is named.",
        "Mend the line that is named; `model { ssd { … } }` and `train_config: { batch_size: 8 }`"
        " show the form.",
    ),
    Code(
        "SNG551",
        "The pipeline.config cannot be made to fit",
        "No allowed change of settings brings the predicted memory under the budget. The message"
        " names the least that was reached.",
        'Give a larger memory, or allow more: allow="changes-training" may change the batch size,'
        " the number of proposals and the size of images.",
    ),
    Code(
        "SNG552",
        "The GPUs are already in use",
        "TensorFlow fixes how it takes a GPU's memory when it first touches one; after that neither"
        " growth nor a limit can be set. Creating a tensor, a variable or a model, or listing"
        " logical devices, touches the GPUs.",
        "Call snugly.configure(…) at the top of the program, before the first tensor or model.",
    ),
    Code(
        "SNG553",
        "GPU memory is asked for in two ways at once",
        "`memory` gives every GPU a fixed limit, `growth` lets it take what it needs as it goes."
        " TensorFlow cannot do both on one GPU.",
        "Give one of them: snugly.configure(growth=True) or snugly.configure(memory='6GiB').",
    ),
    Code(
        "SNG554",
        "More memory is asked for than the GPU has",
        "The limit is larger than the memory of the smallest visible GPU, so that TensorFlow would"
        " fail at the first large tensor instead of now.",
        "Give a smaller memory, or snugly.configure(growth=True).",
    ),
    Code(
        "SNG555",
        "There is no GPU to configure",
        "TensorFlow sees no GPU here, so nothing was set. The program will run on the processor.",
        "Run `snugly doctor` to see why; on a machine without a GPU this can be left as it is.",
    ),
    Code(
        "SNG556",
        "The input pipeline cannot be predicted",
        "The size of some stage cannot be derived from the dataset: a shape is open, a record's"
        " length is not known, or a stage is of a kind that is not known. It is named.",
        "Give its size in sizes={…} under the name in the message, or let a few elements be drawn"
        " with sample=8.",
    ),
    Code(
        "SNG557",
        "The input pipeline never fits",
        "A cache of an endless dataset grows until memory is full, whatever the budget.",
        "Put `.cache()` before `.repeat()`.",
    ),
    Code(
        "SNG558",
        "The input pipeline cannot be brought under the budget",
        "Even with the smallest buffers that are allowed, the pipeline holds more than the budget."
        " The message names the least that works.",
        'Give at least that, or allow more with allow="changes-training".',
    ),
    Code(
        "SNG559",
        "The input pipeline is not what it should be",
        "What was given is not a tf.data.Dataset, or its elements have no batch dimension where one"
        " is needed, or the records to shuffle cannot be read.",
        "Give a tf.data.Dataset; `.batch(32)` gives it a batch dimension.",
    ),
)
