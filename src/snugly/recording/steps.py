"""A program in its new process: loaded, limited, and made into a step that can be repeated."""

from __future__ import annotations

import gc
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError, SnuglyError
from snugly.readers.user_code import failed
from snugly.recording.carrying import EXCEEDED, Task, unpack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Arrived:
    """A task, and its program as people call it."""

    task: Task
    program: Any
    name: str


def arrive(request: bytes, limit: int) -> Arrived:
    """Unpack a task where TensorFlow may have so many MiB, 0 for any number."""
    _limit_gpus(limit)
    try:
        task = unpack(request)
    except SnuglyError:
        raise
    except Exception as problem:
        if limit and _is_shortage(problem):  # not even its weights fit
            error = failed("the program cannot be made", problem)
            raise SnuglyError(error.message, code=EXCEEDED) from problem
        raise InputError(
            f"the program did not survive the way into a fresh process: {problem}", code="SNG306"
        ) from problem
    program, name = _load(task.program)
    return Arrived(task, program, name)


def repeat(
    arrived: Arrived, limit: int, begin: Callable[[], None], name_inputs: Callable[[Any], None]
) -> None:
    """Take all steps; `begin` is called after the first, which builds what is built once."""
    step = _step(arrived.program, arrived.task, name_inputs)
    try:
        step()  # traces functions, makes optimizer slots
        gc.collect()
        begin()
        for _ in range(arrived.task.steps):
            step()
    except SnuglyError:
        raise
    except Exception as problem:
        error = failed(f"{arrived.name} failed", problem)
        if limit and _is_shortage(problem):
            raise SnuglyError(error.message, code=EXCEEDED) from problem
        raise InputError(error.message, code="SNG307") from problem


def tell(problem: SnuglyError, answer: Path) -> None:
    """Leave what went wrong for the process that asked."""
    answer.write_text(
        json.dumps({"message": problem.message, "code": problem.code, "hint": problem.hint})
    )


def _is_shortage(problem: Exception) -> bool:
    import tensorflow as tf

    if isinstance(problem, tf.errors.NotFoundError):
        # cuDNN tried its algorithms, and none got the scratch memory that it wanted.
        return "algorithm" in str(problem)
    return isinstance(problem, (MemoryError, tf.errors.ResourceExhaustedError))


def _limit_gpus(limit: int) -> None:
    """Before anything uses them; the CPU's allocator is limited by the environment."""
    import tensorflow as tf

    if not limit:
        return
    for gpu in tf.config.list_physical_devices("GPU"):
        settings = tf.config.LogicalDeviceConfiguration(memory_limit=limit)
        tf.config.set_logical_device_configuration(gpu, [settings])


def _load(program: Any) -> tuple[Any, str]:
    """The program itself and what people call it."""
    from snugly.readers.locate import KERAS, SAVED_MODEL, TFLITE, find_place
    from snugly.readers.read import load_program

    if not isinstance(program, str):
        name = getattr(program, "name", None) or getattr(program, "__name__", None)
        return program, str(name or type(program).__name__)
    place = find_place(program)
    if place.kind == TFLITE:
        raise InputError(
            f"{place.label} is a TensorFlow Lite model, which TensorFlow does not run",
            hint="give the model that it was converted from",
        )
    if place.kind == SAVED_MODEL:
        import tensorflow as tf

        signatures = tf.saved_model.load(str(place.path)).signatures
        if "serving_default" not in signatures:
            raise InputError(
                f"{place.label} has no signature serving_default",
                hint="save it with one: tf.saved_model.save(model, folder, signatures=…)",
            )
        return signatures["serving_default"], place.label
    if place.kind == KERAS:
        import keras

        return keras.models.load_model(str(place.path)), place.label
    return load_program(place), place.label


def _step(program: Any, task: Task, name_inputs: Callable[[Any], None]) -> Callable[[], object]:
    """What is run again and again."""
    import keras
    import tensorflow as tf

    from snugly.readers.dimensions import Dimensions
    from snugly.readers.keras_model import input_specs, target_specs
    from snugly.readers.tf_function import as_spec, example_of

    dimensions = Dimensions(task.batch_size, task.dimensions)
    if not isinstance(program, keras.Model):
        positional, named = example_of(program, task.example)
        arguments = [_value(a, f"argument {n}", dimensions) for n, a in enumerate(positional)]
        options = {name: _value(a, name, dimensions) for name, a in named.items()}
        name_inputs(tf.nest.flatten([arguments, options]))
        return lambda: program(*arguments, **options)
    if task.training and not getattr(program, "compiled", False):
        raise InputError(
            f"the model {program.name!r} has no optimizer and loss, so there is no training step",
            hint="call model.compile(...) before measuring a training step",
        )
    specs = as_spec(task.example[0], "input", dimensions) if task.example else None
    specs = input_specs(program, dimensions) if specs is None else specs
    inputs = _array(task.example[0] if task.example else specs, "input", dimensions)
    if not task.training:
        return lambda: program.predict_on_batch(inputs)
    if len(task.example) > 1:
        targets = _array(task.example[1], "target", dimensions)
    else:
        targets = _array(target_specs(program, specs), "target", dimensions)
    return lambda: program.train_on_batch(inputs, targets)


def _array(argument: Any, owner: str, dimensions: Any) -> Any:
    """NumPy arrays of what was given: the values themselves, or zeros where only shapes are."""
    import numpy as np
    import tensorflow as tf

    from snugly.readers.tf_function import as_spec

    def zeros(leaf: Any) -> Any:
        if not isinstance(leaf, tf.TensorSpec):
            return leaf
        filled = as_spec(leaf, owner, dimensions)
        if leaf.dtype == tf.string:
            return np.full(tuple(filled.shape), b"", object)
        return np.zeros(tuple(filled.shape), leaf.dtype.as_numpy_dtype)

    return tf.nest.map_structure(zeros, argument)


def _value(argument: Any, owner: str, dimensions: Any) -> Any:
    """Tensors on the device, made by it, so that its allocator counts them."""
    import numpy as np
    import tensorflow as tf

    def tensor(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray) or leaf.dtype == object:
            return leaf
        # A tensor made from an array may borrow the array's memory; a copy does not.
        return tf.raw_ops.DeepCopy(x=tf.constant(leaf))

    return tf.nest.map_structure(tensor, _array(argument, owner, dimensions))
