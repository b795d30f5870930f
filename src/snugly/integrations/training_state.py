"""The state of a training in a file: weights, optimizer, and how far it has come.

Plain arrays in an `.npz` file, written beside and then moved, so that a file is whole or not there.
Nothing in it is ever executed.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy

from snugly.errors import InputError

_POSITION: Final = "position"
_SUFFIX: Final = ".npz"


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where a training goes on. Epochs and batches count from 0, as Keras's hooks do."""

    epoch: int
    batch: int
    """The first batch of that epoch that was not trained yet."""


def state_path(save_to: str | os.PathLike[str]) -> Path:
    """The file's path, which ends in .npz."""
    path = Path(save_to)
    return path if path.suffix == _SUFFIX else path.with_name(path.name + _SUFFIX)


def save_state(model: Any, save_to: str | os.PathLike[str], epoch: int, batch: int) -> Path:
    """Write the state of a training after its last finished batch."""
    arrays = {name: numpy.asarray(variable) for name, variable in trained_variables(model)}
    return write_state(arrays, save_to, epoch, batch)


def write_state(
    arrays: dict[str, numpy.ndarray], save_to: str | os.PathLike[str], epoch: int, batch: int
) -> Path:
    """Write what `trained_variables` held, and how far the training had come."""
    path = state_path(save_to)
    arrays = dict(arrays)
    arrays[_POSITION] = numpy.array([epoch, batch], "int64")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            numpy.savez(file, allow_pickle=False, **arrays)
        beside.replace(path)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise InputError(
            f"cannot save the training to {path}: {problem.strerror or problem}",
            hint="choose another save_to=",
        ) from problem
    return path


def restore_state(model: Any, save_to: str | os.PathLike[str]) -> Resumed:
    """Bring a compiled model of the same shape into the state that was saved."""
    path = state_path(save_to)
    try:
        with numpy.load(path, allow_pickle=False) as saved:
            arrays = {name: saved[name] for name in saved.files}
    except (OSError, ValueError, zipfile.BadZipFile) as problem:
        raise InputError(
            f"cannot read a training from {path}: {problem}",
            hint="it is written by StopOnMemoryLimit(save_to=…)",
        ) from problem
    variables = dict(trained_variables(model))
    position = arrays.pop(_POSITION, numpy.zeros(0))
    fits = arrays.keys() == variables.keys() and all(
        tuple(variables[name].shape) == array.shape for name, array in arrays.items()
    )
    if not fits or position.shape != (2,):
        raise InputError(
            f"{path} is the training of another model or optimizer",
            hint="build and compile the model as it was when it was saved",
        )
    for name, array in arrays.items():
        variables[name].assign(array)
    return Resumed(int(position[0]), int(position[1]))


def trained_variables(model: Any) -> list[tuple[str, Any]]:
    """All that a step changes: weights, seeds of random layers, the optimizer's slots and count."""
    if getattr(model, "optimizer", None) is None or not model.built:
        raise InputError(
            "only a model that is built and compiled has a training to save",
            hint="model.compile(…), and give it an Input or call it once",
        )
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    metrics = {id(variable) for metric in model.metrics for variable in metric.variables}
    own = [variable for variable in model.variables if id(variable) not in metrics]
    named = [(f"model {number}", variable) for number, variable in enumerate(own)]
    slots = enumerate(model.optimizer.variables)
    return named + [(f"optimizer {number}", variable) for number, variable in slots]
