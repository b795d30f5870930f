"""A program on its way into a fresh process, and as it arrives there.

Models travel as their configuration: their weights are made anew, at their size. Functions travel
with cloudpickle. Both come from the caller's own process, so they are trusted as much as it is.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError
from snugly.readers.user_code import is_users

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


EXCEEDED: Final = "SNG601"
"""The code of a task that needed more than its limit."""


_OWN: Final = {"call", "train_step"}
"""Methods that an object has of its own are in no configuration."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be measured, and how."""

    program: Any
    example: tuple[Any, ...] = ()
    batch_size: int | None = None
    training: bool = False
    steps: int = 5
    dimensions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelParcel:
    """A Keras model as its configuration, with the classes it needs that Keras does not have."""

    configuration: dict[str, Any]
    custom: dict[str, Any]


def pack(task: Task) -> bytes:
    """A task as bytes; an error with a hint where its program cannot travel."""
    import cloudpickle

    program = task.program
    if isinstance(program, (str, os.PathLike)):
        task = replace(task, program=os.fspath(program))
    elif _is_model(program):
        task = replace(task, program=_parcel(program))
    task = replace(task, example=tuple(_plain(argument) for argument in task.example))
    try:
        with _by_value(_users_modules()):
            return cloudpickle.dumps(task)
    except Exception as problem:  # pickling runs code of every class it meets
        raise _cannot_travel(program, problem) from problem


def unpack(data: bytes) -> Task:
    """The task in its new process, a model built anew."""
    import cloudpickle

    with _variables_own_their_memory():
        task: Task = cloudpickle.loads(data)
    if not isinstance(task.program, ModelParcel):
        return task
    import keras

    keras.config.enable_unsafe_deserialization()  # the caller's own model, lambdas included
    parcel = task.program
    model = keras.saving.deserialize_keras_object(
        parcel.configuration, custom_objects=parcel.custom
    )
    return replace(task, program=model)


@contextmanager
def _variables_own_their_memory() -> Iterator[None]:
    """Variables travel as arrays, and one made from an array may borrow the array's memory.

    TensorFlow does so where that happens to be aligned, and its allocator does not count it.
    """
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.ops import resource_variable_ops

    kind: Any = resource_variable_ops.ResourceVariable
    original = kind.__init__

    def copying(variable: Any, initial_value: Any = None, *arguments: Any, **named: Any) -> None:
        if isinstance(initial_value, np.ndarray) and initial_value.dtype != object:
            initial_value = tf.raw_ops.DeepCopy(x=tf.constant(initial_value))
        original(variable, initial_value, *arguments, **named)

    kind.__init__ = copying
    try:
        yield
    finally:
        kind.__init__ = original


def _is_model(program: Any) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(program, keras.Model)


def _parcel(model: Any) -> ModelParcel:
    import keras

    things = [model, *model._flatten_layers(include_self=False)]  # noqa: SLF001 - no public way
    changed = [thing.name for thing in things if _OWN & vars(thing).keys()]
    if changed:
        # It would be another program there: one that keeps what this one computes again.
        raise _cannot_travel(model, TypeError(f"{changed[0]} was changed after it was made"))
    things += [getattr(model, name, None) for name in ("optimizer", "loss")]
    things += [getattr(metric, "_fn", None) for metric in getattr(model, "metrics", ())]
    custom: dict[str, Any] = {}
    for thing in things:
        custom |= {kind.__name__: kind for kind in type(thing).__mro__ if _is_users_own(kind)}
        if isinstance(thing, FunctionType) and _is_users_own(thing):
            custom[thing.__name__] = thing
    functions = {id(value): value for thing in things for value in _functions_in(thing)}
    with _named_lambdas(functions.values()) as named:
        try:
            configuration: Any = keras.saving.serialize_keras_object(model)
        except Exception as problem:
            raise _cannot_travel(model, problem) from problem
    return ModelParcel(configuration, custom | named)


def _functions_in(thing: Any) -> Iterator[FunctionType]:
    held = thing if isinstance(thing, FunctionType) else getattr(thing, "__dict__", {})
    values = held.values() if isinstance(held, dict) else [held]
    yield from (value for value in values if isinstance(value, FunctionType))


@contextmanager
def _named_lambdas(functions: Iterable[FunctionType]) -> Iterator[dict[str, FunctionType]]:
    """Keras writes a lambda down as bytecode, without what it refers to; a named function by name.

    So each lambda has a name while the model is written down, and travels as functions do.
    """
    named = {
        f"snugly_lambda_{number}": function
        for number, function in enumerate(functions)
        if function.__name__ == "<lambda>"
    }
    for name, function in named.items():
        function.__name__ = name
    try:
        yield named
    finally:
        for function in named.values():
            function.__name__ = "<lambda>"


def _is_users_own(thing: Any) -> bool:
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    named = hasattr(thing, "__name__")
    return (
        named
        and module is not None
        and (file is None or is_users(file))
        and (module.__name__ != "builtins")
    )


def _plain(argument: Any) -> Any:
    """Tensors become arrays, which travel; specs and arrays stay."""
    tf = sys.modules.get("tensorflow")
    if tf is None:
        return argument

    def plain(leaf: Any) -> Any:
        is_value = isinstance(leaf, (tf.Tensor, tf.Variable))
        return leaf.numpy() if is_value and hasattr(leaf, "numpy") else leaf

    return tf.nest.map_structure(plain, argument)


def _users_modules() -> Iterator[Any]:
    """Modules that the other process may not find: the user's own, of this folder or script."""
    for name, module in tuple(sys.modules.items()):
        file = getattr(module, "__file__", None)
        # A module that goes by another name than its own cannot be asked for by that.
        if file is None or getattr(module, "__name__", None) != name:
            continue
        if getattr(module, "__spec__", None) is not None and not _is_installed(name, file):
            yield module


def _is_installed(name: str, file: str) -> bool:
    """Whether a package manager put a module where it is, so that every process finds it."""
    if "site-packages" in file or "dist-packages" in file or not is_users(file):
        return True
    above = Path(file).parents
    depth = name.count(".") + (Path(file).stem == "__init__")
    return depth < len(above) and _holds_packages(above[depth])


@cache
def _holds_packages(folder: Path) -> bool:
    """Whether packages were installed into a folder, as `pip install --target` does."""
    return any(folder.glob("*.dist-info"))


@contextmanager
def _by_value(modules: Iterable[Any]) -> Iterator[None]:
    import cloudpickle

    with ExitStack() as stack:
        for module in modules:
            if module.__name__ in cloudpickle.list_registry_pickle_by_value():
                continue
            cloudpickle.register_pickle_by_value(module)
            stack.callback(cloudpickle.unregister_pickle_by_value, module)
        yield


def _cannot_travel(program: Any, problem: Exception) -> InputError:
    name = getattr(program, "name", None) or getattr(program, "__name__", type(program).__name__)
    reason = str(problem).strip().splitlines()
    return InputError(
        f"{name!r} cannot be carried into a fresh process:"
        f" {reason[0][:200] if reason else type(problem).__name__}",
        code="SNG306",
    )
