"""predict: the first answer. Read the program, play its lives, say what they came to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, SupportsIndex

from snugly.devices import budget_for, is_gpu
from snugly.errors import InputError
from snugly.predicting.distributed import check_compiled, check_distributed, predict_distributed
from snugly.predicting.lite import LITE_RUNTIMES, is_tflite, predict_tflite
from snugly.predicting.readings import lives_of, predict_reading
from snugly.predicting.strategies import strategy_from
from snugly.predicting.suggest import suggest_batch_size
from snugly.readers.datasets import example_from
from snugly.readers.dimensions import Dimensions
from snugly.readers.machine import cpu_machine, gpu_machine, this_machine
from snugly.readers.read import read_program
from snugly.readers.replicas import order_of_creation, without_strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snugly.devices import Device
    from snugly.predicting.prediction import Prediction
    from snugly.readers.read import Reading

__all__ = ["lives_of", "predict", "predict_reading"]


def predict(  # noqa: PLR0913  # the public contract
    program: Any,
    *example: Any,
    batch_size: int | None = None,
    training: bool = False,
    memory: str | SupportsIndex | None = None,
    device: str | Device | None = None,
    jit_compile: bool | None = None,
    runtime: str | None = None,
    dimensions: Mapping[str, int] | None = None,
    allow_code: bool = False,
    strategy: Any = None,
) -> Prediction:
    """Say before a run how much memory one step of a program takes, and whether it fits.

    Args:
        program: a `keras.Model`, a `tf.function`, a ConcreteFunction, a callable with
            `tf.TensorSpec`s in `example`, or text: the path of a `.keras` file, a SavedModel
            folder or a `.tflite` file, `script.py:name` or `module:name`.
        *example: what the program is called with: specs, arrays or tensors. Of a model, the input
            and, for training, the target, or a batched `tf.data.Dataset` of both. Their values are
            never used.
        batch_size: the size of every first dimension that the program leaves open.
        training: one training step of a compiled model, else inference.
        memory: the budget, as a size. Not together with `device`.
        device: the budget is what this device offers, and the program runs there; without it, where
            TensorFlow would run it on this machine: on a GPU if there is one.
        jit_compile: whether XLA compiles the step; None for what TensorFlow would do.
        runtime: what runs the program: "tensorflow", op by op, or "xla" for `jit_compile=True`;
            of a `.tflite` file "litert", "xnnpack" or "micro".
        dimensions: the sizes of other open dimensions, by name.
        allow_code: let a model file run code that it carries.
        strategy: how training is spread: a `tf.distribute` strategy, or "mirrored:4",
            "multiworker:2x4" (workers and devices of each) or "parameter-server:4x2" (workers and
            servers). The prediction is then that of one replica, `batch_size` that of all replicas
            together, and `distribution` says what workers and servers need.
    """
    started = time.perf_counter()
    example, batch_size = example_from(example, batch_size)
    chosen = None if strategy is None else strategy_from(strategy)
    op_by_op, order = False, None
    if chosen is not None:
        check_distributed(program, example, batch_size, training=training)
        op_by_op = check_compiled(jit_compile, runtime)
        jit_compile = False
    if is_tflite(program):
        _check_fixed(batch_size, dimensions, training=training)
        return predict_tflite(program, runtime, memory, device)
    _check(batch_size, runtime)
    if runtime is not None and jit_compile is None:
        jit_compile = runtime == "xla"
    budget = budget_for(memory, device)
    machine = None
    if device is not None:
        machine = gpu_machine() if is_gpu(device) else cpu_machine()
    if chosen is not None:
        order = order_of_creation(program)
        program = without_strategy(program)
        machine = machine or this_machine()

    def read(size: int | None) -> Reading:
        return read_program(
            program,
            example,
            dimensions=Dimensions(size, dimensions or {}),
            training=training,
            jit_compile=jit_compile,
            machine=machine,
            allow_code=allow_code,
        )

    def at(size: int | None) -> Prediction:
        if chosen is None or size is None or machine is None:
            return predict_reading(read(size), budget)
        on_gpu = machine.device == "gpu"
        compiled = not op_by_op and (on_gpu or bool(getattr(program, "jit_compile", False)))
        return predict_distributed(
            read, size, budget, chosen, on_gpu=on_gpu, compiled=compiled, order=order
        )

    prediction = at(batch_size)
    suggestions: tuple[str, ...] = ()
    if prediction.verdict in {"does-not-fit", "uncertain"} and batch_size is not None:
        suggestions = suggest_batch_size(prediction, batch_size, at)
    return prediction.completed(suggestions, time.perf_counter() - started)


def _check(batch_size: int | None, runtime: str | None) -> None:
    if batch_size is not None and batch_size < 1:
        raise InputError(
            f"the batch size must be at least 1, not {batch_size}", hint="give batch_size=32"
        )
    if runtime not in {None, "tensorflow", "xla"}:
        raise InputError(
            f"the runtime {runtime!r} cannot be predicted for this program",
            code="SNG564" if runtime in LITE_RUNTIMES else None,
            hint="leave it out: TensorFlow runs Keras models, functions and SavedModels",
        )


def _check_fixed(
    batch_size: int | None, dimensions: Mapping[str, int] | None, *, training: bool
) -> None:
    """Nothing about a `.tflite` file is open but the runtime."""
    if training:
        raise InputError("a .tflite file does not train", code="SNG565", hint="leave --train out")
    if batch_size not in {None, 1} or dimensions:
        raise InputError(
            "the shapes of a .tflite file are fixed",
            code="SNG565",
            hint="leave the batch size and dimensions out, or convert the model for them",
        )
