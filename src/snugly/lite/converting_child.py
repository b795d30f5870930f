"""Convert a program to a `.tflite`; run in a process of its own, never imported elsewhere.

    python -m snugly.lite.converting_child FOLDER

The request says which program; the model is left as `model.tflite`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np

from snugly.errors import InputError, UnsafeProgramError
from snugly.lite.children import answering, reason_of
from snugly.lite.quantising_child import outputs_of
from snugly.lite.samples import made_up_samples
from snugly.readers.keras_file import load_keras_file
from snugly.readers.locate import KERAS, SAVED_MODEL, Place, find_place
from snugly.readers.read import load_program
from snugly.readers.start import load_tensorflow
from snugly.readers.tflite import read_tflite

UNCONVERTIBLE: Final = "SNG572"
FILE_OPERATORS: Final = {"ReadFile", "WriteFile", "PrintV2"}
"""What may touch files, _OP_DENYLIST of tensorflow/python/tools/saved_model_cli.py."""
MOST_NAMES: Final = 6


def convert(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Load, fix the batch, convert, and leave the file."""
    tf = load_tensorflow()
    place = find_place(request["program"])
    allow_code = bool(request["allow_code"])
    if place.kind == SAVED_MODEL:
        function, owner = _of_saved_model(tf, Path(str(place.path)), allow_code=allow_code)
    elif place.kind == KERAS:
        function, owner = _of_model(tf, _keras_file(place, allow_code=allow_code), place.label)
    else:
        function, owner = _of_object(tf, load_program(place), place.label)
    made = _converted(tf, function, place.label)
    (folder / "model.tflite").write_bytes(made)
    note = f"converted by TensorFlow {tf.__version__}, for one example at a time"
    compared = _compared(tf, function, made)
    del owner  # held until here: a function does not keep its variables
    return {"note": f"{note}; {compared}"}


def _compared(tf: Any, function: Any, made: bytes) -> str:
    """How far the outputs are from TensorFlow's, on one random input, in a sentence."""
    try:
        samples = [array[1] for array in made_up_samples(read_tflite(made)).arrays]
        found = outputs_of(made, [array[None] for array in samples])
        wanted = tf.nest.flatten(function(*[tf.constant(array) for array in samples]))
        apart = [
            float(np.abs(values[0] - one.numpy().astype(np.float64)).max(initial=0.0))
            for (_, values), one in zip(found, wanted, strict=True)
        ]
    except Exception as problem:  # noqa: BLE001 - the file is made; that it was not compared is said
        return f"not compared with TensorFlow: {reason_of(problem)}"
    return f"outputs differ from TensorFlow's by {max(apart, default=0.0):.2g} at most (measured)"


def _keras_file(place: Place, *, allow_code: bool) -> Any:
    """The model with its weights; its configuration is looked through first, as everywhere."""
    path = Path(str(place.path))
    model = load_keras_file(path, allow_code=allow_code)
    try:
        model.load_weights(str(path))
    except Exception as problem:
        raise InputError(
            f"the weights in {path.name} cannot be loaded: {reason_of(problem)}",
            code="SNG105",
            hint="save it again with model.save('model.keras')",
        ) from problem
    return model


def _of_object(tf: Any, found: Any, label: str) -> tuple[Any, Any]:
    import keras

    if isinstance(found, keras.Model):
        return _of_model(tf, found, label)
    if hasattr(found, "get_concrete_function") or hasattr(found, "structured_input_signature"):
        return _of_function(tf, found, label)
    raise InputError(
        f"{label} is a {type(found).__name__}, not a Keras model or a tf.function",
        hint="give a model, or a function without arguments that builds one",
    )


def _of_model(tf: Any, model: Any, label: str) -> tuple[Any, Any]:
    import keras

    try:
        inputs = list(model.inputs or ())
    except (AttributeError, ValueError):
        inputs = []
    if not inputs:
        raise InputError(
            f"{label} does not say of which shapes its inputs are",
            code=UNCONVERTIBLE,
            hint="build the model with keras.Input, or call it once where it is made",
        )
    specs = [
        tf.TensorSpec(
            _fixed(tuple(one.shape), one.name, label), one.dtype, re.sub(r"\W", "_", one.name)
        )
        for one in inputs
    ]
    structure = model.input if not isinstance(model, keras.Sequential) else inputs[0]

    def call(*given: Any) -> Any:
        return model(keras.tree.pack_sequence_as(structure, list(given)), training=False)

    return tf.function(call, autograph=False).get_concrete_function(*specs), model


def _of_saved_model(tf: Any, folder: Path, *, allow_code: bool) -> tuple[Any, Any]:
    from tensorflow.core.protobuf import saved_model_pb2

    description = saved_model_pb2.SavedModel()
    try:
        description.ParseFromString((folder / "saved_model.pb").read_bytes())
    except Exception as problem:
        raise InputError(
            f"{folder.name} is not a SavedModel, or is damaged: {reason_of(problem)}",
            code="SNG105",
        ) from problem
    touching = sorted(_operators_of(description) & FILE_OPERATORS)
    if touching and not allow_code:
        raise UnsafeProgramError(
            f"{folder.name} has operators that touch files: {', '.join(touching)}",
            hint="if you trust it, allow it: --allow-code",
        )
    loaded = tf.saved_model.load(str(folder))
    signatures = dict(loaded.signatures)
    if not signatures:
        raise InputError(
            f"{folder.name} has no signature to convert",
            code=UNCONVERTIBLE,
            hint="export it with a signature: tf.saved_model.save(model, path, signatures=...)",
        )
    chosen = signatures.get("serving_default") or signatures[min(signatures)]
    _, named = chosen.structured_input_signature
    specs = {
        name: tf.TensorSpec(_fixed_shape(spec.shape, name, folder.name), spec.dtype, name)
        for name, spec in named.items()
    }

    def call(**given: Any) -> Any:
        return chosen(**given)

    return tf.function(call, autograph=False).get_concrete_function(**specs), loaded


def _operators_of(description: Any) -> set[str]:
    used: set[str] = set()
    for graph in description.meta_graphs:
        used.update(node.op for node in graph.graph_def.node)
        for function in graph.graph_def.library.function:
            used.update(node.op for node in function.node_def)
    return used


def _of_function(tf: Any, found: Any, label: str) -> tuple[Any, Any]:
    try:
        concrete = found
        if hasattr(found, "get_concrete_function"):
            concrete = found.get_concrete_function()
    except Exception as problem:
        raise InputError(
            f"TensorFlow cannot trace {label} without arguments: {reason_of(problem)}",
            code=UNCONVERTIBLE,
            hint="decorate it: @tf.function(input_signature=[tf.TensorSpec(...)])",
        ) from problem
    positional, named = concrete.structured_input_signature
    specs = tf.nest.map_structure(
        lambda spec: (
            tf.TensorSpec(_fixed_shape(spec.shape, spec.name, label), spec.dtype, spec.name)
            if isinstance(spec, tf.TensorSpec)
            else spec
        ),
        (positional, named),
    )

    def call(*given: Any, **more: Any) -> Any:
        return concrete(*given, **more)

    return tf.function(call, autograph=False).get_concrete_function(*specs[0], **specs[1]), found


def _fixed_shape(shape: Any, name: Any, label: str) -> tuple[int, ...]:
    if shape.rank is None:
        raise InputError(
            f"the input {str(name)!r:.60} of {label} has no known number of dimensions",
            code=UNCONVERTIBLE,
            hint="give its shape where the program is made",
        )
    return _fixed(tuple(shape.as_list()), name, label)


def _fixed(shape: tuple[int | None, ...], name: Any, label: str) -> tuple[int, ...]:
    """The batch is one; whatever else is open has to be said by whoever made the model."""
    fixed = (1, *shape[1:]) if shape and shape[0] is None else shape
    if None in fixed:
        text = "×".join("?" if size is None else str(size) for size in shape)
        raise InputError(
            f"the input {str(name)!r:.60} of {label} is {text}: more than its batch is open",
            code="SNG103",
            hint="build the model for one size: keras.Input((96, 96, 3))",
        )
    return tuple(size for size in fixed if size is not None)


def _converted(tf: Any, function: Any, label: str) -> bytes:
    # Without an object that owns the variables: with one, and Keras 3, the converter leaves them
    # variables whose values are in no file. Without, it makes them constants, or fails.
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], None)
    try:
        made = bytes(converter.convert())
    except Exception as problem:
        text = str(problem)
        if "AssignVariableOp" in text:
            raise _keeping_variables(label) from problem
        names = re.findall(r"(?:TF Select|Flex|Custom) ops?: ([\w, .:]+)", text)
        known = dict.fromkeys(
            one.strip() for part in names for one in part.split(",") if one.strip()
        )
        if not known:
            raise InputError(
                f"the converter refused {label}: {reason_of(problem)}", code=UNCONVERTIBLE
            ) from problem
        shown = ", ".join(list(known)[:MOST_NAMES])
        raise InputError(
            f"{label} has operations for which there are no TFLite operators: {shown}",
            code=UNCONVERTIBLE,
            hint="replace the layers that use them; what runs them inside of LiteRT (Select TF ops)"
            " is all of TensorFlow, which no microcontroller holds",
        ) from problem
    _refuse_variables(made, label)
    return made


def _refuse_variables(made: bytes, label: str) -> None:
    names = {one.name for part in read_tflite(made).subgraphs for one in part.operators}
    if "VAR_HANDLE" in names:
        raise _keeping_variables(label)


def _keeping_variables(label: str) -> InputError:
    return InputError(
        f"{label} keeps variables from one call to the next, whose values a .tflite does not hold",
        code=UNCONVERTIBLE,
        hint="make it a model without state, with the state as an input and an output",
    )


if __name__ == "__main__":
    answering(convert)
