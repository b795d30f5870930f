"""Creations: models, variables, datasets and the like are counted where they are made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from snugly.recording.leaks.sites import passes

if TYPE_CHECKING:
    from types import FrameType

    from snugly.recording.leaks.hooks import Hooks
    from snugly.recording.leaks.journal import Journal

MODEL, LAYER, OPTIMIZER, COMPILE = "model", "layer", "optimizer", "compile"
VARIABLE, DATASET, ITERATOR = "variable", "dataset", "iterator"
TAPE, TABLE, SESSION, PYTHON_FUNCTION = "tape", "table", "session", "python-function"

# A variable that one of these makes is a part of it.
_PARTS_OF = (
    "/keras/src/layers",
    "/keras/src/optimizers",
    "/keras/src/metrics",
    "/keras/src/models",
)
# compile() makes one from a name, saving and loading from a description: the model's own.
_MAKE_OPTIMIZERS = (
    "/keras/src/trainers",
    "/keras/src/saving",
    "/keras/src/models",
    "/keras/src/callbacks",
)
# These register functions of their own.
_REGISTERS = ("from_generator_op", "/keras/")


class Creations:
    """Counts what is made."""

    def __init__(self, hooks: Hooks, journal: Journal) -> None:
        self._hooks = hooks
        self._journal = journal

    def watch_tensorflow(self) -> None:
        """Count what TensorFlow makes."""
        from tensorflow.python.client import session
        from tensorflow.python.data.ops import dataset_ops, iterator_ops
        from tensorflow.python.ops import lookup_ops, resource_variable_ops, script_ops

        after = self._hooks.after
        after(resource_variable_ops.BaseResourceVariable, "__init__", self._variable)
        after(dataset_ops.DatasetV2, "__init__", self._dataset)
        after(iterator_ops.OwnedIterator, "__init__", self._iterator)
        after(lookup_ops.LookupInterface, "__init__", self._simple(TABLE))
        after(session.BaseSession, "__init__", self._simple(SESSION))
        after(script_ops.FuncRegistry, "insert", self._python_function)

    def watch_keras(self) -> None:
        """Count what Keras makes."""
        from keras.src.layers.layer import Layer
        from keras.src.optimizers.base_optimizer import BaseOptimizer
        from keras.src.trainers.trainer import Trainer

        # `__new__` runs before any `__init__` of the user's own, right at the line that asks.
        self._hooks.after(Layer, "__new__", self._layer)
        self._hooks.after(BaseOptimizer, "__init__", self._optimizer)
        self._hooks.after(Trainer, "compile", self._compile)

    def _layer(self, layer: Any, _: tuple[Any, ...], __: dict[str, Any]) -> None:
        from keras import Model

        frame = _caller()
        is_model = isinstance(layer, Model)
        is_inside = type(layer).__name__ == "Functional"
        if is_inside and passes(frame, "/keras/src/models/sequential.py"):
            return  # every sequential model has a functional one inside
        if is_model or not passes(frame, "/keras/src/models", "/keras/src/saving"):
            self._journal.made(MODEL if is_model else LAYER, layer, frame)

    def _optimizer(self, _: None, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        frame = _caller()
        if not passes(frame, *_MAKE_OPTIMIZERS):
            self._journal.made(OPTIMIZER, args[0], frame)

    def _compile(self, _: None, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        self._journal.made(COMPILE, args[0], _caller())

    def _variable(self, _: None, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        frame = _caller()
        variable = args[0]
        # What assigning gives back is a view of the variable that was assigned to; a variable in
        # a graph is operations of the graph.
        is_view = type(variable).__name__ == "_UnreadVariable"
        if not is_view and not variable._in_graph_mode and not passes(frame, *_PARTS_OF):  # noqa: SLF001
            self._journal.made(VARIABLE, variable, frame)

    def _dataset(self, _: None, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        frame = _caller()
        dataset = args[0]
        if type(dataset).__name__ in {"CacheDataset", "_CacheDataset"}:
            self._journal.caches = True
        if not passes(frame, "/keras/"):
            self._journal.made(DATASET, dataset, frame)

    def _iterator(self, _: None, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        frame = _caller()
        if not passes(frame, "/keras/"):
            self._journal.made(ITERATOR, args[0], frame)

    def _python_function(self, _: str, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        frame = _caller()
        if not passes(frame, *_REGISTERS):
            self._journal.made(PYTHON_FUNCTION, args[1], frame)

    def _simple(self, kind: str) -> Any:
        def made(_: None, args: tuple[Any, ...], __: dict[str, Any]) -> None:
            self._journal.made(kind, args[0], _caller())

        return made


def _caller() -> FrameType:
    """The frame that called the hooked function: past the action, the guard and the wrapper."""
    return sys._getframe(4)  # noqa: SLF001
