"""What is differentiated: a function or model, its inputs, its outputs, and by what.

A `Subject` knows the shapes of everything and how to call the function on tensors inside a graph.
It is found by tracing the function once; nothing is computed for it.
"""

from __future__ import annotations

import functools
import math
import weakref
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError, missing_tensorflow
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DRAWING: Final = frozenset({
    "Multinomial", "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoisson",
    "RandomPoissonV2", "RandomShuffle", "RandomStandardNormal", "RandomUniform",
    "RandomUniformInt", "RngReadAndSkip", "RngSkip", "StatefulRandomBinomial",
    "StatefulStandardNormal", "StatefulStandardNormalV2", "StatefulTruncatedNormal",
    "StatefulUniform", "StatefulUniformFullInt", "StatefulUniformInt", "TruncatedNormal",
})  # fmt: skip
"""Operations that draw other numbers on every run (tensorflow/core/ops/random_ops.cc, TF 2.21)."""


_NOT_COMPUTED: Final = frozenset({
    "Const", "Identity", "Placeholder", "ReadVariableOp", "Reshape", "ExpandDims", "Squeeze",
})  # fmt: skip
"""Operations that hand on what is there."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One tensor of a nested structure: its shape, and the type of its elements."""

    shape: tuple[int, ...]
    dtype: Any
    """TensorFlow's type."""
    name: str = ""

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> Size:
        """What it takes."""
        return Size(self.size * self.dtype.size)


class Subject:
    """A function with everything about its inputs and outputs that a plan needs."""

    def __init__(self, function: Any, x: Any, wrt: Any = None) -> None:
        tf = tensorflow()
        self._function = _weakly(function)
        self.title = str(getattr(function, "name", None) or getattr(function, "__name__", "f"))
        _build(function, x)
        self.structure = tf.nest.map_structure(_spec, x)
        self.inputs = [Leaf(_static(s, "x"), s.dtype) for s in tf.nest.flatten(self.structure)]
        self.wrt = None if wrt is None else wrt
        self.variables = None if wrt is None else [_variable(v) for v in tf.nest.flatten(wrt)]
        self.sources = self._sources()
        self._converted = False
        self.concrete = self._traced()
        self.result = self.concrete.structured_outputs
        self.outputs = self._outputs()
        kinds = {node.op for node in _nodes(self.concrete.graph)}
        self.random = bool(kinds & _DRAWING) or (
            any(kind.startswith("StatelessRandom") for kind in kinds)
            and any(kind.startswith("Assign") for kind in kinds)
        )

    def call(self, leaves: Sequence[Any]) -> list[Any]:
        """The outputs for inputs, both as flat lists, inside a graph."""
        tf = tensorflow()
        function = self._function()
        if self._converted:
            function = tf.function(function)
        packed = tf.nest.pack_sequence_as(self.structure, list(leaves))
        return [tf.convert_to_tensor(y) for y in tf.nest.flatten(function(packed))]

    def of_batch(self, examples: int) -> Subject:
        """The same function of fewer examples: inputs that are shorter along their first axis."""
        tf = tensorflow()
        structure = tf.nest.map_structure(
            lambda spec: tf.TensorSpec((examples, *spec.shape[1:]), spec.dtype), self.structure
        )
        return Subject(self._function(), structure)

    def watched(self, leaves: Sequence[Any]) -> list[Any]:
        """What is differentiated by, inside a graph: the inputs, or variables."""
        return list(leaves) if self.variables is None else list(self.variables)

    @functools.cached_property
    def activations(self) -> int:
        """Bytes of everything that a forward pass computes, added up."""
        graphs = [self.concrete.graph, *_bodies(self.concrete.graph)]
        tensors = [
            tensor
            for graph in graphs
            for operation in graph.get_operations()
            if operation.type not in _NOT_COMPUTED
            for tensor in operation.outputs
        ]
        known = [tensor for tensor in tensors if tensor.shape.is_fully_defined()]
        return sum(math.prod(tensor.shape) * tensor.dtype.size for tensor in known)

    @property
    def held(self) -> int:
        """Bytes of the inputs."""
        return sum(leaf.bytes for leaf in self.inputs)

    def _sources(self) -> list[Leaf]:
        if self.variables is None:
            leaves = self.inputs
        else:
            leaves = [Leaf(tuple(v.shape), v.dtype, v.name) for v in self.variables]
        for leaf in leaves:
            if not (leaf.dtype.is_floating or leaf.dtype.is_complex):
                raise InputError(
                    f"the input is of type {leaf.dtype.name}: there is no derivative by it",
                    code="SNG520",
                    hint="convert it with `tf.cast(x, tf.float32)`, or name what to differentiate"
                    " by: `wrt=model.trainable_variables`",
                )
        if not leaves:
            raise InputError("there is nothing to differentiate by", code="SNG520")
        return leaves

    def _traced(self) -> Any:
        tf = tensorflow()
        specs = tf.nest.flatten(self.structure)

        def body(*leaves: Any) -> Any:
            function = self._function()
            if self._converted:
                function = tf.function(function)
            with tf.variable_creator_scope(_refuse_variable):
                return function(tf.nest.pack_sequence_as(self.structure, list(leaves)))

        try:
            return tf.function(body, autograph=False).get_concrete_function(*specs)
        except tf.errors.OperatorNotAllowedInGraphError:
            # Python's `if` and `while` over tensors: AutoGraph turns them into a graph.
            self._converted = True
            return tf.function(body, autograph=False).get_concrete_function(*specs)

    def _outputs(self) -> list[Leaf]:
        tf = tensorflow()
        outputs = [
            None if y is None else Leaf(_static(y, f"the output of {self.title}"), y.dtype)
            for y in tf.nest.flatten(self.result)
        ]
        for leaf in outputs:
            if leaf is None or not (leaf.dtype.is_floating or leaf.dtype.is_complex):
                what = "None" if leaf is None else f"numbers of type {leaf.dtype.name}"
                raise InputError(
                    f"{self.title} returns {what}: there is no derivative of that", code="SNG520"
                )
        if not outputs:
            raise InputError(f"{self.title} returns nothing", code="SNG520")
        return [leaf for leaf in outputs if leaf is not None]


def tensorflow() -> Any:
    """TensorFlow, or the error that says how to install it."""
    try:
        import tensorflow as tf
    except ImportError:
        raise missing_tensorflow() from None
    return tf


def tensors_of(x: Any) -> list[Any]:
    """The inputs as a flat list of tensors."""
    tf = tensorflow()
    return [tf.convert_to_tensor(leaf) for leaf in tf.nest.flatten(x)]


def owner_of(function: Any) -> tuple[Any, str]:
    """Whose life a function shares, and its name there: a bound method is made anew each time."""
    if isinstance(function, MethodType):
        return function.__self__, function.__func__.__qualname__
    return function, ""


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """NumPy's type for TensorFlow's."""
    return np.dtype(dtype.as_numpy_dtype)


def _weakly(function: Any) -> Callable[[], Any]:
    # What is kept for a second call must not keep the user's model alive.
    try:
        if isinstance(function, MethodType):
            return weakref.WeakMethod(function)
        return weakref.ref(function)
    except TypeError:
        return lambda: function


def _build(function: Any, x: Any) -> None:
    """Let a Keras layer make its weights, which it does when it is first called."""
    if getattr(function, "built", True) is False and hasattr(function, "count_params"):
        function(x)
    if not callable(function):
        raise InputError(
            f"a {type(function).__name__} is not a function", code="SNG529", hint="give f, then x"
        )


def _spec(x: Any) -> Any:
    tf = tensorflow()
    if isinstance(x, tf.TensorSpec):
        return x
    try:
        tensor = tf.convert_to_tensor(x)
    except (TypeError, ValueError) as error:
        raise InputError(f"x cannot be a tensor: {error}", code="SNG520") from error
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _static(tensor: Any, title: str) -> tuple[int, ...]:
    if tensor.shape.rank is None or not tensor.shape.is_fully_defined():
        raise InputError(
            f"the shape of {title} is not known before it is computed: {tensor.shape}",
            code="SNG103",
            hint="fix it with `tf.ensure_shape` inside the function",
        )
    return tuple(tensor.shape.as_list())


def _variable(variable: Any) -> Any:
    tf = tensorflow()
    if not isinstance(variable, tf.Variable):
        variable = getattr(variable, "value", variable)  # Keras 3 wraps TensorFlow's
    if not isinstance(variable, tf.Variable):
        raise InputError(
            f"wrt has a {type(variable).__name__}, which is not a variable",
            code="SNG529",
            hint="wrt=model.trainable_variables; to differentiate by inputs, leave it out",
        )
    return variable


def _bodies(graph: Any) -> list[Any]:
    """The graphs of functions that a graph calls."""
    from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

    return [function_def_to_graph(f) for f in graph.as_graph_def().library.function]


def _refuse_variable(*_: Any, **settings: Any) -> Any:
    name = settings.get("name") or "a variable"
    raise InputError(f"the function creates {name} when it is called", code="SNG523")


def _nodes(graph: Any) -> list[Any]:
    definition = graph.as_graph_def()
    inner = [node for function in definition.library.function for node in function.node_def]
    return [*definition.node, *inner]
