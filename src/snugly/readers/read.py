"""Any program → Graph. The one place that knows all kinds of programs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snugly.errors import InputError, UnknownDimensionError, UnpredictableProgramError, missing_tensorflow
from snugly.graph.model import Graph, Kind, Origin
from snugly.readers.dimensions import Dimensions
from snugly.readers.expand import expand
from snugly.readers.keras_file import load_keras_file
from snugly.readers.keras_model import trace_model, variables_of
from snugly.readers.locate import KERAS, SAVED_MODEL, TFLITE, Place, call_builder, find_place, load_object
from snugly.readers.node import Machine
from snugly.readers.optimise import Optimised, optimise, optimise_signature
from snugly.readers.origin import Origins, layer_names
from snugly.readers.scene import graph_scene
from snugly.readers.saved_model import read_saved_model
from snugly.readers.slots import Expansion
from snugly.readers.tf_function import as_spec, is_concrete, trace_function
from snugly.readers.untouched import untouched
from snugly.readers.variables import Variable


@dataclass(slots=True)
class Reading:
    """A program, read: its graph, what it is called, and what could not be found out."""

    graph: Graph
    name: str
    tensorflow: str
    training: bool
    origin: Callable[[str], Origin]
    notes: list[str] = field(default_factory=list)


def read_program(
    program: Any,
    example: tuple[Any, ...] = (),
    *,
    dimensions: Dimensions,
    training: bool = False,
    machine: Machine | None = None,
    allow_code: bool = False,
) -> Reading:
    """Read a Keras model, a function, or what a path or `module:name` stands for.

    Everything is built and traced inside a graph of its own, where variables are names: a model larger than this
    machine's memory is read as easily as a small one. Objects the caller passes in are left as they were.
    """
    _tensorflow()
    machine = machine or this_machine()
    place = find_place(os.fspath(program)) if isinstance(program, (str, os.PathLike)) else None
    if place is not None and place.kind == TFLITE:
        raise InputError(f"{place.path} is a TensorFlow Lite model, which TensorFlow does not run", hint="give a .keras file")
    with graph_scene():
        if place is not None and place.kind == SAVED_MODEL:
            return _read_signature(place, dimensions, machine, training)
        if place is not None:
            program = _load(place, allow_code)
        name = _name(program, place)
        with untouched(program):
            return _read_object(program, example, dimensions, machine, training, name)


def this_machine() -> Machine:
    """The kernels TensorFlow would choose here."""
    onednn = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1").lower() not in ("0", "false")
    return Machine("cpu", onednn, os.cpu_count() or 1)


def _tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # its start-up chatter is not ours
    try:
        import tensorflow as tf
    except ImportError as problem:
        raise missing_tensorflow() from problem
    return tf


def _load(place: Place, allow_code: bool) -> Any:
    if place.kind == KERAS:
        return load_keras_file(Path(str(place.path)), allow_code=allow_code)
    found = load_object(place)
    if callable(found) and not is_program(found):
        return call_builder(found, str(place.name))
    return found


def is_program(thing: Any) -> bool:
    """A model or a function that TensorFlow can trace; a plain Python function is a builder until it says otherwise."""
    import keras

    return isinstance(thing, keras.Model) or hasattr(thing, "get_concrete_function") or is_concrete(thing)


def _name(program: Any, place: Place | None) -> str:
    if place is not None:
        where = place.path.name if place.path is not None else str(place.module)
        return f"{where}:{place.name}" if place.name else where
    return getattr(program, "name", None) or getattr(program, "__name__", None) or type(program).__name__


def _read_object(
    program: Any, example: tuple[Any, ...], dimensions: Dimensions, machine: Machine, training: bool, name: str
) -> Reading:
    import keras

    variables: dict[str, Variable] = {}
    layers: list[str] = []
    if isinstance(program, keras.Model):
        specs = tuple(as_spec(part, f"argument {index}", dimensions) for index, part in enumerate(example))
        function = trace_model(program, specs, dimensions, training=training)
        variables = variables_of(program, function)
        layers = layer_names(program)
    elif callable(program) or is_concrete(program):
        function = trace_function(program, example, dimensions)
    else:
        raise InputError(
            f"{name!r} is a {type(program).__name__}, which is neither a Keras model nor a function",
            hint="give a keras.Model, a tf.function, or a callable with tf.TensorSpecs",
        )
    origins = Origins(function.graph, layers)
    return _reading(optimise(function), variables, dimensions, machine, name, training, origins)


def _read_signature(place: Place, dimensions: Dimensions, machine: Machine, training: bool) -> Reading:
    folder = Path(str(place.path))
    if training:
        raise InputError(
            f"{folder.name} is a SavedModel, which holds no training step",
            hint="give the script that builds and compiles the model as script.py:name",
        )
    signature = read_saved_model(folder, dimensions)
    return _reading(optimise_signature(signature), {}, dimensions, machine, folder.name, training, Origins())


def _reading(
    optimised: Optimised,
    variables: dict[str, Variable],
    dimensions: Dimensions,
    machine: Machine,
    name: str,
    training: bool,
    origins: Origins,
) -> Reading:
    import tensorflow as tf

    expansion = expand(optimised.graph_def, optimised.outputs, machine, variables, dimensions)
    expansion.graph.inputs_stay = not variables
    _refuse_unknown(expansion, name)
    return Reading(expansion.graph, name, tf.__version__, training, origins.of, _notes(expansion))


def _refuse_unknown(expansion: Expansion, name: str) -> None:
    if expansion.shapeless:
        operator, _, where = expansion.shapeless[0].partition(" ")
        raise UnpredictableProgramError(
            f"{name}: the size of what {operator} makes ({where}) is known only when it runs",
            hint=f"say how long it is: dimensions={{{operator!r}: 1000}} (on the command line --dimension {operator}=1000)",
        )


def _notes(expansion: Expansion) -> list[str]:
    notes = [f"the loop {loop} turns as often as its data says; two turns were predicted" for loop in expansion.open_loops]
    notes += [f"{name} makes at most what was predicted; how much depends on the data" for name in expansion.bounded]
    notes += [f"the branch at {name} depends on the data; the larger one was predicted" for name in expansion.open_branches]
    return sorted(set(notes))
