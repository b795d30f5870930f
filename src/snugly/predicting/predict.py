"""predict: the first answer. Read the program, play its lives, say what they came to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, SupportsIndex

from snugly.allocators.bfc import BfcAllocator
from snugly.devices import budget_for, is_gpu
from snugly.errors import InputError
from snugly.predicting.estimate import estimate
from snugly.predicting.lite import LITE_RUNTIMES, is_tflite, predict_tflite
from snugly.predicting.peak import describe_peak
from snugly.predicting.prediction import Prediction
from snugly.predicting.spread import spread_of
from snugly.predicting.suggest import suggest_batch_size
from snugly.readers.dimensions import Dimensions
from snugly.readers.machine import cpu_machine, gpu_machine
from snugly.readers.read import read_program
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snugly.devices import Budget, Device
    from snugly.predicting.estimate import Estimate
    from snugly.readers.read import Reading

ON_GPU = (
    "predicted op by op, with the scratch that cuDNN was seen to take on an H200; it chooses anew"
    " on every card, so the range is wider"
)
UNLIMITED = 1 << 60  # bytes: the replay never runs out, so that it can say how much would be needed


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
) -> Prediction:
    """Say before a run how much memory one step of a program takes, and whether it fits.

    Args:
        program: a `keras.Model`, a `tf.function`, a ConcreteFunction, a callable with
            `tf.TensorSpec`s in `example`, or text: the path of a `.keras` file, a SavedModel
            folder or a `.tflite` file, `script.py:name` or `module:name`.
        *example: what the program is called with: specs, arrays or tensors. Of a model, the input
            and, for training, the target. Their values are never used.
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
    """
    started = time.perf_counter()
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

    def at(size: int | None) -> Prediction:
        reading = read_program(
            program,
            example,
            dimensions=Dimensions(size, dimensions or {}),
            training=training,
            jit_compile=jit_compile,
            machine=machine,
            allow_code=allow_code,
        )
        return predict_reading(reading, budget)

    prediction = at(batch_size)
    suggestions: tuple[str, ...] = ()
    if prediction.verdict in {"does-not-fit", "uncertain"} and batch_size is not None:
        suggestions = suggest_batch_size(prediction, batch_size, at)
    return prediction.completed(suggestions, time.perf_counter() - started)


def predict_reading(reading: Reading, budget: Budget | None = None) -> Prediction:
    """The prediction for a program that has been read."""
    result = lives_of(reading)
    spread = spread_of(result, reading)
    chosen_by_cudnn = reading.on_gpu and not (reading.compiled or reading.compiled_elsewhere)
    notes = [*reading.notes, ON_GPU] if chosen_by_cudnn else reading.notes
    peak = describe_peak(reading, result)
    return Prediction(
        program=reading.name,
        training=reading.training,
        peak=spread.peak,
        low=spread.low,
        high=spread.high,
        requested=peak.requested,
        resident=Size(reading.graph.resident_bytes()),
        building=Size(result.building),
        parts=peak.parts,
        tensors=peak.tensors,
        timeline=peak.timeline,
        budget=budget,
        peak_where=peak.where,
        notes=tuple(notes),
        tensorflow=reading.tensorflow,
    )


def lives_of(reading: Reading) -> Estimate:
    """A program's lives, in the allocator of the machine that it was read for."""
    return estimate(reading.graph, _gpu_allocator if reading.on_gpu else _cpu_allocator)


def _cpu_allocator() -> BfcAllocator:
    return BfcAllocator.for_cpu(UNLIMITED)


def _gpu_allocator() -> BfcAllocator:
    return BfcAllocator.for_gpu(UNLIMITED, growth=True)


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
