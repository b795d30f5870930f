"""Quantised forms of a float model, made by ai-edge-quantizer, each with what it does to outputs.

A smaller file is not less memory: weights that are made float again before use are there twice,
and activations that are quantised while the model runs need room for the copy. So a form is an
offer, judged by whoever asks for it. TFLite Micro is never offered a hybrid of float activations
and int8 weights, which it refuses to start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.errors import InputError
from snugly.lite.children import folder_for, run_child
from snugly.lite.result import AccuracyChange, OutputChange
from snugly.lite.samples import made_up_samples, read_samples

if TYPE_CHECKING:
    import os

    from snugly.lite.samples import Samples
    from snugly.readers.tflite import LiteModel

SECONDS: Final = 300.0
LARGEST_MODEL: Final = 1 << 30
"""Bytes of all tensors together: to learn their ranges, all of them are kept at once."""
FORMS: Final = {
    "weights": "weights are int8, and made float again when it runs",
    "dynamic": "weights are int8; activations stay float, and are quantised when it runs",
    "int8": "weights and activations are int8; inputs and outputs keep their types",
    "int8-throughout": "weights, activations, inputs and outputs are int8: what calls the model has"
    " to quantise what it gives, and to make float what it gets",
}
"""From the least harm to the most."""
_MICRO_FORMS: Final = ("int8", "int8-throughout")
_MADE_OF: Final = {"FLOAT32"}


@dataclass(frozen=True, slots=True)
class Quantised:
    """One form of a model; without data, why it could not be made."""

    form: str
    data: bytes | None
    accuracy: AccuracyChange | None
    note: str


def why_not(model: LiteModel) -> str | None:
    """Why a model cannot be quantised; None where nothing is known against it."""
    tensors = [tensor for part in model.subgraphs for tensor in part.tensors]
    if any(tensor.is_quantized for tensor in tensors):
        return "the model is quantised already"
    if not any(tensor.type.name in _MADE_OF and not tensor.is_constant for tensor in tensors):
        return "the model does not compute in float, so that there is nothing to quantise"
    custom = [one.name for part in model.subgraphs for one in part.operators if one.is_custom]
    if custom:
        return f"the custom operator {custom[0][:40]} cannot be run here, to learn its ranges"
    if not model.main.inputs or min(model.main.inputs) < 0:
        return "the model has no inputs, so that no ranges can be learned"
    if sum(tensor.bytes for tensor in tensors) > LARGEST_MODEL:
        return "its tensors take more than 1 GiB together, and all are needed to learn their ranges"
    return None


def samples_for(model: LiteModel, path: str | os.PathLike[str] | None) -> Samples:
    """The user's samples, else made-up ones."""
    return made_up_samples(model) if path is None else read_samples(path, model)


def forms_for(runtime: str) -> tuple[str, ...]:
    """What is worth offering to a runtime, least harm first."""
    return _MICRO_FORMS if runtime == "micro" else tuple(FORMS)


def quantised(source: bytes, samples: Samples, forms: tuple[str, ...]) -> list[Quantised]:
    """The forms of a model.

    Raises:
        InputError: the quantiser is not installed (SNG005), or nothing could be made (SNG573).
    """
    with folder_for({"forms": forms}) as folder:
        (folder / "model.tflite").write_bytes(source)
        arrays = {f"i{place}": array for place, array in enumerate(samples.arrays)}
        np.savez(folder / "samples.npz", **arrays)
        answer = run_child("quantising_child", folder, "the quantiser", seconds=SECONDS)
        made: list[Quantised] = []
        for form in forms:
            found = answer["forms"].get(form, {"error": "it was not made"})
            if "error" in found:
                made.append(Quantised(form, None, None, str(found["error"])))
                continue
            accuracy = AccuracyChange(
                samples.count,
                samples.made_up,
                tuple(OutputChange(**row) for row in found["outputs"]),
            )
            note = FORMS[form]
            if form not in {"weights", "dynamic"}:  # which know no ranges
                note += f"; calibrated on {samples.note}"
            data = (folder / f"{form}.tflite").read_bytes()
            made.append(Quantised(form, data, accuracy, note))
    if all(one.data is None for one in made):
        raise InputError(f"the quantiser refused the model: {made[-1].note}", code="SNG573")
    return made
