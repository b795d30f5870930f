"""What the zoo is made of: programs, the arrays they take, and their registry.

Importing this module loads no TensorFlow: builders import it when they are called, in the child
process that has already chosen the allocator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    import keras
    import numpy as np
    import tensorflow as tf

Kind = Literal["model", "function"]
HELD_OUT = "held-out"
"""Tag of programs that nobody looks at while tuning the predictor."""
FIRST = "first"
"""Tag of the programs that calibration starts with."""
TRAIN_ONLY = "train-only"
"""Tag of programs whose inference is another program's, or is not a program's purpose."""


@dataclass(frozen=True)
class Array:
    """One input or target. `None` in the shape stands for the batch size, wherever it is."""

    shape: tuple[int | None, ...]
    dtype: str = "float32"
    high: int = 2  # integers are drawn from [0, high)
    content: Literal["random", "definite"] = "random"  # definite: symmetric positive definite

    def concrete(self, batch: int) -> tuple[int, ...]:
        return tuple(batch if size is None else size for size in self.shape)


@dataclass(frozen=True)
class Function:
    """A `tf.function` and the arrays it is called with."""

    call: Any
    inputs: tuple[Array, ...]

    def specs(self, batch: int) -> tuple[tf.TensorSpec, ...]:
        import tensorflow as tf

        return tuple(tf.TensorSpec(array.concrete(batch), array.dtype) for array in self.inputs)


@dataclass(frozen=True)
class Program:
    """A name, a builder, and the batch sizes at which it is measured.

    `build()` returns a compiled `keras.Model`, or a `Function`. A subclassed model, whose inputs
    Keras does not know before it is called, names them in `inputs` and `targets`.
    """

    name: str
    kind: Kind
    build: Callable[[], keras.Model | Function]
    batches: tuple[int, int, int]
    tags: frozenset[str] = frozenset()
    optimizer: str = "-"
    inputs: tuple[Array, ...] | None = None
    targets: tuple[Array, ...] | None = None

    @property
    def modes(self) -> tuple[str, ...]:
        """What is measured: a function is only called, a model also trains."""
        if self.kind == "function":
            return ("infer",)
        return ("train",) if TRAIN_ONLY in self.tags else ("train", "infer")


REGISTRY: dict[str, Program] = {}


def add(program: Program) -> None:
    """Put a program into the registry; a name is taken once."""
    if program.name in REGISTRY:
        raise ValueError(f"two programs are called {program.name}")
    REGISTRY[program.name] = program


def model(
    name: str,
    batches: tuple[int, int, int],
    *tags: str,
    optimizer: str = "adam",
    inputs: tuple[Array, ...] | None = None,
    targets: tuple[Array, ...] | None = None,
) -> Callable[[Callable[[], keras.Model]], Callable[[], keras.Model]]:
    """Register the decorated builder of a compiled model."""

    def register(build: Callable[[], keras.Model]) -> Callable[[], keras.Model]:
        add(Program(name, "model", build, batches, frozenset(tags), optimizer, inputs, targets))
        return build

    return register


def function(
    name: str, batches: tuple[int, int, int], inputs: tuple[Array, ...], *tags: str
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register the decorated builder of a `tf.function` that takes `inputs`."""

    def register(build: Callable[[], Any]) -> Callable[[], Any]:
        def built() -> Function:
            return Function(build(), inputs)

        add(Program(name, "function", built, batches, frozenset(tags)))
        return build

    return register


def model_inputs(program: Program, built: keras.Model) -> tuple[Array, ...]:
    """The arrays the model takes; token inputs stay inside the smallest embedding."""
    if program.inputs is not None:
        return program.inputs
    import keras

    layers = built._flatten_layers()
    tables = [layer.input_dim for layer in layers if isinstance(layer, keras.layers.Embedding)]
    high = min(tables, default=2)
    return tuple(Array(tuple(x.shape), str(x.dtype), high) for x in built.inputs)


def model_targets(program: Program, built: keras.Model) -> tuple[Array, ...]:
    """What the model is trained towards: class numbers for a sparse loss, else like its output."""
    if program.targets is not None:
        return program.targets
    outputs = built.outputs
    losses = built.loss if isinstance(built.loss, (list, tuple)) else [built.loss] * len(outputs)
    return tuple(
        Array(tuple(output.shape[:-1]), "int32", output.shape[-1])
        if "sparse" in str(getattr(loss, "name", loss))
        else Array(tuple(output.shape), "float32")
        for output, loss in zip(outputs, losses, strict=True)
    )


def draw(array: Array, batch: int, seed: int) -> np.ndarray[Any, Any]:
    """Random values of the array's shape and dtype; the same for the same seed."""
    import numpy as np

    random = np.random.default_rng(seed)
    shape = array.concrete(batch)
    if array.content == "definite":
        values = random.standard_normal(shape)
        values = values @ values.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])
    elif array.dtype.startswith(("int", "uint", "bool")):
        values = random.integers(0, array.high, shape)
    elif array.dtype.startswith("complex"):
        values = random.random(shape) + 1j * random.random(shape)
    else:
        values = random.random(shape, dtype="float32")
    return values.astype(array.dtype)
