"""Any program → Graph. The one place that knows all kinds of programs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError, SnuglyError, UnpredictableProgramError
from snugly.readers.compiled import compiled_graph
from snugly.readers.expand import expand
from snugly.readers.jit import UNSUPPORTED, Compiling, compiling, supports_xla
from snugly.readers.keras_file import load_keras_file
from snugly.readers.keras_model import trace_model, variables_of
from snugly.readers.layers import LayerScopes, watching_layers
from snugly.readers.locate import (
    KERAS,
    SAVED_MODEL,
    TFLITE,
    Place,
    call_builder,
    find_place,
    load_object,
)
from snugly.readers.machine import grappler_device, this_machine, traced_as_on, xla_platform
from snugly.readers.optimise import Optimised, optimise, optimise_signature
from snugly.readers.origin import Origins, origins_of
from snugly.readers.saved_model import read_saved_model
from snugly.readers.scene import graph_scene
from snugly.readers.start import load_tensorflow
from snugly.readers.tf_function import as_spec, is_concrete, trace_function
from snugly.readers.untouched import untouched
from snugly.readers.user_code import failed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.graph.model import Graph, Origin
    from snugly.readers.dimensions import Dimensions
    from snugly.readers.node import Machine
    from snugly.readers.slots import Expansion
    from snugly.readers.variables import Variable


@dataclass(slots=True)
class Reading:
    """A program, read: its graph, what it is called, and what could not be found out."""

    graph: Graph
    name: str
    tensorflow: str
    training: bool
    origin: Callable[[str], Origin]
    on_gpu: bool = False
    # XLA compiles all of it: the graph is one launch, or, where that would be on a machine that is
    # not this one, what would run without XLA.
    compiled: bool = False
    compiled_elsewhere: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of a program, whatever its kind."""

    name: str
    dimensions: Dimensions
    machine: Machine
    training: bool
    jit_compile: bool | None = None


def read_program(  # noqa: PLR0913 - what can be said of a program, all but two by name
    program: Any,
    example: tuple[Any, ...] = (),
    *,
    dimensions: Dimensions,
    training: bool = False,
    jit_compile: bool | None = None,
    machine: Machine | None = None,
    allow_code: bool = False,
) -> Reading:
    """Read a Keras model, a function, or what a path or `module:name` stands for.

    Everything is built and traced inside a graph of its own, where variables are names: a model
    larger than this machine's memory is read as easily as a small one. Objects the caller passes
    in are left as they were.
    """
    is_text = isinstance(program, (str, os.PathLike))
    place = find_place(os.fspath(program)) if is_text else None
    if place is not None and place.kind == TFLITE:
        raise InputError(
            f"{place.label} is a TensorFlow Lite model, which TensorFlow does not run",
            hint="give the .keras file or SavedModel folder that it was converted from",
        )
    load_tensorflow()
    machine = machine or this_machine()
    with graph_scene(), traced_as_on(machine), watching_layers() as scopes:
        if place is not None and place.kind == SAVED_MODEL:
            folder = Path(str(place.path))
            question = _Question(folder.resolve().name, dimensions, machine, training)
            return _read_signature(folder, question)
        if place is not None:
            program = _load(place, allow_code=allow_code)
        name = place.label if place is not None else _name(program)
        with untouched(program):
            question = _Question(name, dimensions, machine, training, jit_compile)
            return _read_object(program, example, question, scopes)


def _load(place: Place, *, allow_code: bool) -> Any:
    if place.kind == KERAS:
        return load_keras_file(Path(str(place.path)), allow_code=allow_code)
    return load_program(place)


def load_model(program: str, *, allow_code: bool = False) -> Any:
    """The Keras model that a PROGRAM is, its weights made anew; an error where it is none."""
    import keras

    place = find_place(program)
    load_tensorflow()
    if place.kind in {SAVED_MODEL, TFLITE}:
        raise InputError(
            f"{place.label} holds no model that could be trained",
            hint="give model.keras, or the script that builds the model as script.py:name",
        )
    found = _load(place, allow_code=allow_code)
    if not isinstance(found, keras.Model):
        raise InputError(
            f"{place.label} is a {type(found).__name__}, not a Keras model",
            hint="give a model, or a function without arguments that builds one",
        )
    return found


def load_program(place: Place) -> Any:
    """What a name in some code stands for: a model, a function, or what a builder builds."""
    found = load_object(place)
    if callable(found) and not is_program(found):
        return call_builder(found, str(place.name))
    return found


def is_program(thing: Any) -> bool:
    """A model, or a function that TensorFlow can trace.

    A plain Python function is a builder until it says otherwise.
    """
    import keras

    is_function = hasattr(thing, "get_concrete_function") or is_concrete(thing)
    return is_function or isinstance(thing, keras.Model)


def _name(program: Any) -> str:
    name = getattr(program, "name", None) or getattr(program, "__name__", None)
    return str(name or type(program).__name__)


def _read_object(
    program: Any, example: tuple[Any, ...], question: _Question, scopes: LayerScopes
) -> Reading:
    import keras

    is_model = isinstance(program, keras.Model)
    if not is_model and not callable(program):
        raise InputError(
            f"{question.name!r} is a {type(program).__name__}, not a Keras model or a function",
            hint="give a keras.Model, a tf.function, or a callable with tf.TensorSpecs",
        )
    decision = compiling(program, question.jit_compile, question.machine)
    try:
        function = _trace(program, example, question, is_model=is_model, compiled=decision.whole)
    except SnuglyError:
        raise
    except Exception as problem:
        raise failed(
            f"TensorFlow cannot trace {question.name!r}: it failed",
            problem,
            hint="call it by itself first, with arguments of these shapes and types",
        ) from problem
    if is_model and (decision.whole or decision.elsewhere) and not supports_xla(program):
        decision = Compiling(notes=(UNSUPPORTED,) if question.jit_compile else ())
    variables = variables_of(program, function) if is_model else {}
    model = program if is_model else None
    origins = origins_of(function.graph, scopes, model, variables.values())
    if decision.whole:
        graph = compiled_graph(function, variables, xla_platform(question.machine))
        graph.inputs_stay = not is_model
        reading = _reading_of(graph, origins, question, decision.notes)
        reading.compiled = True
        return reading
    optimised = optimise(function, device=grappler_device(question.machine))
    reading = _reading(optimised, variables, origins, question)
    reading.notes.extend(decision.notes)
    reading.compiled_elsewhere = decision.elsewhere
    return reading


def _trace(
    program: Any, example: tuple[Any, ...], question: _Question, *, is_model: bool, compiled: bool
) -> Any:
    dimensions = question.dimensions
    if is_model:
        specs = tuple(
            as_spec(part, f"argument {position}", dimensions)
            for position, part in enumerate(example)
        )
        return trace_model(
            program, specs, dimensions, training=question.training, jit_compile=compiled
        )
    return trace_function(program, example, dimensions, jit_compile=compiled)


def _read_signature(folder: Path, question: _Question) -> Reading:
    if question.training:
        raise InputError(
            f"{question.name} is a SavedModel, which holds no training step",
            hint="give the script that builds and compiles the model as script.py:name",
        )
    signature = read_saved_model(folder, question.dimensions)
    optimised = optimise_signature(signature, device=grappler_device(question.machine))
    return _reading(optimised, {}, Origins(), question)


def _reading(
    optimised: Optimised, variables: dict[str, Variable], origins: Origins, question: _Question
) -> Reading:
    expansion = expand(
        optimised.graph_def, optimised.outputs, question.machine, variables, question.dimensions
    )
    expansion.graph.inputs_stay = not variables
    _refuse_unknown(expansion, question.name)
    return _reading_of(expansion.graph, origins, question, _notes(expansion))


def _reading_of(
    graph: Graph, origins: Origins, question: _Question, notes: Sequence[str] = ()
) -> Reading:
    return Reading(
        graph=graph,
        name=question.name,
        tensorflow=load_tensorflow().__version__,
        training=question.training,
        on_gpu=question.machine.device == "gpu",
        origin=origins.of,
        notes=list(notes),
    )


def _refuse_unknown(expansion: Expansion, name: str) -> None:
    if expansion.shapeless:
        operator, _, where = expansion.shapeless[0].partition(" ")
        raise UnpredictableProgramError(
            f"{name}: the size of what {operator} makes ({where}) is known only when it runs",
            hint=f"say how long it is: dimensions={{{operator!r}: 1000}} (on the command line"
            f" --dimension {operator}=1000)",
        )


def _notes(expansion: Expansion) -> list[str]:
    notes = [
        f"the loop {loop} turns as often as its data says; two turns were predicted"
        for loop in expansion.open_loops
    ]
    notes += [
        f"{name} makes at most what was predicted; how much depends on the data"
        for name in expansion.bounded
    ]
    notes += [
        f"the branch at {name} depends on the data; the larger one was predicted"
        for name in expansion.open_branches
    ]
    return sorted(set(notes))
