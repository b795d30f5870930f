"""Quantise a model and compare its outputs; run in a process of its own, never imported.

    python -m snugly.lite.quantising_child FOLDER

The folder holds `model.tflite`, `samples.npz` (`i0`, `i1`, …) and the request: which forms are
wanted. Each form that could be made is left as `FORM.tflite`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import MissingDependencyError
from snugly.lite.children import answering, reason_of

if TYPE_CHECKING:
    from pathlib import Path

KEY: Final = "serving_default"
THREADS: Final = 2
_RECIPES: Final = {
    "int8": "static_wi8_ai8",
    "int8-throughout": "static_wi8_ai8",
    "dynamic": "dynamic_wi8_afp32",
    "weights": "weight_only_wi8_afp32",
}


def quantise(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make every form; of each, how far its outputs are from those of the model, or why not."""
    try:
        import ai_edge_quantizer  # noqa: F401 # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise MissingDependencyError(
            "quantising needs ai-edge-quantizer, which is not installed",
            hint='pip install "snugly[quantise]"',
        ) from None
    warnings.simplefilter("ignore")
    source = (folder / "model.tflite").read_bytes()
    with np.load(folder / "samples.npz", allow_pickle=False) as loaded:
        samples = [loaded[f"i{place}"] for place in range(len(loaded.files))]
    reference = outputs_of(source, samples)
    signed, added = _signed(source)
    forms: dict[str, Any] = {}
    for form in request["forms"]:
        try:
            made = _quantised(signed, form, samples)
            made = _unsigned(made) if added else made
            forms[form] = {"outputs": _compared(reference, outputs_of(made, samples))}
            (folder / f"{form}.tflite").write_bytes(made)
        except Exception as error:  # noqa: BLE001 - whatever the quantiser raises is its answer
            forms[form] = {"error": reason_of(error)}
    return {"forms": forms}


def _quantised(source: bytes, form: str, samples: list[Any]) -> bytes:
    from ai_edge_quantizer import qtyping, quantizer, recipe

    made = quantizer.Quantizer(bytearray(source))
    made.load_quantization_recipe(getattr(recipe, _RECIPES[form])())
    if form == "int8":
        for end in (qtyping.TFLOperationName.INPUT, qtyping.TFLOperationName.OUTPUT):
            made.update_quantization_recipe(".*", end, algorithm_key="no_quantize")
    ranges = None
    if made.need_calibration:
        ranges = _ranges(made, source, samples)
    result = made.quantize(ranges).quantized_model
    if result is None:
        raise ValueError("the quantiser made nothing")
    return bytes(result)


def _ranges(made: Any, source: bytes, samples: list[Any]) -> dict[str, Any]:
    """Of each tensor the smallest and the largest value that it ever had.

    Sample by sample, because over several the quantiser takes a moving average, by which what is
    rare is cut off.
    """
    key, names = _inputs(source)
    ranges: dict[str, Any] = {}
    for number in range(len(samples[0])):
        given = {name: array[number] for name, array in zip(names, samples, strict=True)}
        for name, found in made.calibrate({key: [given]}, num_threads=THREADS).items():
            kept = ranges.setdefault(name, dict(found))
            for end, wider in (("min", np.minimum), ("max", np.maximum)):
                if end in found and end in kept:
                    kept[end] = wider(kept[end], found[end])
                elif end in found:
                    kept[end] = found[end]
    return ranges


def _signed(source: bytes) -> tuple[bytes, bool]:
    """The model with a signature, which the quantiser asks for, and whether it got it here."""
    from ai_edge_litert import schema_py_generated as schema

    model = _unpacked(source)
    if any(one.subgraphIndex == 0 for one in model.signatureDefs or ()):
        return source, False
    made = schema.SignatureDefT()
    made.signatureKey, made.subgraphIndex = KEY, 0
    main = model.subgraphs[0]
    made.inputs = _maps(schema, "i", main.inputs)
    made.outputs = _maps(schema, "o", main.outputs)
    model.signatureDefs = [made]
    return _packed(model), True


def _maps(schema: Any, letter: str, indices: Any) -> list[Any]:
    made: list[Any] = []
    for place, index in enumerate(indices):
        entry = schema.TensorMapT()
        entry.name, entry.tensorIndex = f"{letter}{place}", int(index)
        made.append(entry)
    return made


def _unsigned(source: bytes) -> bytes:
    model = _unpacked(source)
    model.signatureDefs = None
    return _packed(model)


def _unpacked(source: bytes) -> Any:
    from ai_edge_litert import schema_py_generated as schema

    return schema.ModelT.InitFromPackedBuf(source, 0)


def _packed(model: Any) -> bytes:
    import flatbuffers

    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _inputs(source: bytes) -> tuple[str, list[str]]:
    """The signature of the first subgraph, and what it calls the inputs, in their order."""
    model = _unpacked(source)
    signature = next(one for one in model.signatureDefs if one.subgraphIndex == 0)
    names = {entry.tensorIndex: entry.name for entry in signature.inputs}
    text = {
        index: name if isinstance(name, str) else name.decode() for index, name in names.items()
    }
    key = signature.signatureKey
    key = key if isinstance(key, str) else key.decode()
    return key, [text[int(index)] for index in model.subgraphs[0].inputs]


def outputs_of(source: bytes, samples: list[Any]) -> list[tuple[str, Any]]:
    """Name and values of each output, for all samples, by the real interpreter; as real numbers."""
    from ai_edge_litert import interpreter as lite

    kind = lite.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = lite.Interpreter(
        model_content=source, experimental_op_resolver_type=kind, num_threads=THREADS
    )
    interpreter.allocate_tensors()
    found: list[list[Any]] = [[] for _ in interpreter.get_output_details()]
    for number in range(len(samples[0]) if samples else 1):
        for details, array in zip(interpreter.get_input_details(), samples, strict=True):
            interpreter.set_tensor(details["index"], _as_input(array[number], details))
        interpreter.invoke()
        for values, details in zip(found, interpreter.get_output_details(), strict=True):
            values.append(_as_numbers(interpreter.get_tensor(details["index"]), details))
    names = [str(details["name"]) for details in interpreter.get_output_details()]
    return [(name, np.stack(values)) for name, values in zip(names, found, strict=True)]


def _as_input(values: Any, details: dict[str, Any]) -> Any:
    scale, zero = details["quantization"]
    kind = details["dtype"]
    if values.dtype == kind or not scale:
        return values.astype(kind, copy=False)
    limits = np.iinfo(kind)
    return np.clip(np.round(values / scale) + zero, limits.min, limits.max).astype(kind)


def _as_numbers(values: Any, details: dict[str, Any]) -> Any:
    scale, zero = details["quantization"]
    values = values.astype(np.float64)
    return (values - zero) * scale if scale else values


def _compared(before: list[tuple[str, Any]], after: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Of each output: the difference, the range that it has, and how often the largest agrees."""
    rows: list[dict[str, Any]] = []
    for (name, one), (_, other) in zip(before, after, strict=True):
        if one.shape != other.shape:
            raise ValueError(f"an output of {one.shape} became {other.shape}")
        if not (np.isfinite(one).all() and np.isfinite(other).all()):
            raise ValueError("an output is infinite or no number")
        apart = np.abs(one - other)
        row: dict[str, Any] = {
            "name": name,
            "largest": float(apart.max(initial=0.0)),
            "mean": float(apart.mean()) if apart.size else 0.0,
            "range": float(one.max() - one.min()) if one.size else 0.0,
            "agreement": None,
        }
        if one.ndim > 1 and one.shape[-1] > 1:
            row["agreement"] = float((one.argmax(-1) == other.argmax(-1)).mean())
        rows.append(row)
    return rows


if __name__ == "__main__":
    answering(quantise)
