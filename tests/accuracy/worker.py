"""The child process: builds one program, runs it, and reports what the allocator saw.

Started by `measure.py`, which sets the environment before TensorFlow is loaded. The request is the
first argument (JSON), the answer goes to the file the request names.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.accuracy import trace
from tests.accuracy.zoo import Function, Program, find
from tests.accuracy.zoo.program import draw, model_inputs, model_targets

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 5
LOOP_BATCHES = 4


@dataclass(frozen=True)
class Steps:
    """How to run the program: one step, and the loop that a user would write."""

    once: Callable[[], object]
    loop: Callable[[], object] | None  # fit or predict over several batches; a function has none


def device() -> str:
    """Where the programs run: on the GPU, if the parent has left one visible."""
    import tensorflow as tf

    return "GPU:0" if tf.config.list_physical_devices("GPU") else "CPU:0"


def memory() -> dict[str, int]:
    import tensorflow as tf

    return tf.config.experimental.get_memory_info(device())


def reset() -> None:
    import tensorflow as tf

    gc.collect()
    tf.config.experimental.reset_memory_stats(device())


def prepare(program: Program, built: Any, batch: int, mode: str) -> Steps:
    """Draw the program's arrays and close over them."""
    if isinstance(built, Function):
        return _prepare_function(built, batch)
    inputs, targets = model_inputs(program, built), model_targets(program, built)

    def arrays(count: int) -> tuple[Any, Any]:
        x = [draw(array, count, seed) for seed, array in enumerate(inputs)]
        y = [draw(array, count, seed) for seed, array in enumerate(targets, start=len(inputs))]
        return _one_or_all(x), _one_or_all(y)

    x, y = arrays(batch)
    many_x, many_y = arrays(LOOP_BATCHES * batch)
    if mode == "train":
        return Steps(
            lambda: built.train_on_batch(x, y),
            lambda: built.fit(many_x, many_y, batch_size=batch, epochs=1, verbose=0),
        )
    return Steps(
        lambda: built.predict_on_batch(x),
        lambda: built.predict(many_x, batch_size=batch, verbose=0),
    )


def _one_or_all(arrays: list[Any]) -> Any:
    if not arrays:
        return None
    return arrays[0] if len(arrays) == 1 else arrays


def _prepare_function(built: Function, batch: int) -> Steps:
    import tensorflow as tf

    # Copies made by the device, so that its allocator counts them: a tensor made from a NumPy array
    # may borrow NumPy's memory.
    with tf.device(device()):
        drawn = [draw(array, batch, seed) for seed, array in enumerate(built.inputs)]
        tensors = [tf.raw_ops.DeepCopy(x=tf.constant(values)) for values in drawn]
    return Steps(lambda: built.call(*tensors), None)


def traced(run: Callable[[], object], known: trace.Trace | None = None) -> trace.Trace:
    """Run under the profiler and read what it saw."""
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        try:
            run()
            gc.collect()
        finally:
            tf.profiler.experimental.stop()
        return trace.read(Path(folder), known)


def _steps(once: Callable[[], object]) -> dict[str, Any]:
    """Peaks of single steps; their maximum is the peak of all steps in a row."""
    reset()
    before = memory()["current"]
    peaks = []
    for _ in range(STEPS):
        reset()
        once()
        peaks.append(memory()["peak"])
    gc.collect()
    return {
        "peak": max(peaks),
        "step_peaks": peaks,
        "current_before": before,
        "current_after": memory()["current"],
    }


def _loop(loop: Callable[[], object]) -> dict[str, Any]:
    loop()
    reset()
    before = memory()["current"]
    loop()
    peak = memory()["peak"]
    gc.collect()
    return {"peak": peak, "current_before": before, "current_after": memory()["current"]}


def measure(request: dict[str, Any]) -> list[dict[str, Any]]:
    """All protocols on one program, one record each."""
    program = find(request["program"])
    batch, mode = request["batch"], request["mode"]
    common: dict[str, Any] = {}
    made: list[Steps] = []

    def begin() -> None:
        made.append(prepare(program, program.build(), batch, mode))
        common["build_peak"] = memory()["peak"]
        common["build_current"] = memory()["current"]
        reset()
        made[0].once()
        common["first_step_peak"] = memory()["peak"]

    beginning = traced(begin)
    resident_requested, resident_traced = trace.live_at_end(beginning)
    steps = made[0]
    on_batch = _steps(steps.once)
    reset()
    step = traced(steps.once, known=beginning)
    on_batch |= {
        "traced_peak": memory()["peak"],
        "resident_requested": resident_requested,
        # Chunk bytes; equals current_before when nothing escaped the trace.
        "resident_traced": resident_traced,
        "requested": resident_requested + trace.requested_rise(step),
        "copied_from_host": trace.copied_from_host(step),
        "events": len(step.events),
    }
    protocol = "call" if program.kind == "function" else "on_batch"
    records = [{"protocol": protocol, **common, **on_batch}]
    if steps.loop is not None:
        records.append(
            {"protocol": "fit" if mode == "train" else "predict", **common, **_loop(steps.loop)}
        )
    if request.get("trace"):
        trace.save(step, {**request["about"], **records[0]}, Path(request["trace"]))
    return records


def measure_untraced(request: dict[str, Any]) -> dict[str, Any]:
    """Peaks alone, with XLA as asked: what is compared on a GPU."""
    program = find(request["program"])
    built = program.build()
    if not isinstance(built, Function):
        built.jit_compile = request["compiled"]
    steps = prepare(program, built, request["batch"], request["mode"])
    reset()
    steps.once()
    found = {"first_step_peak": memory()["peak"], **_steps(steps.once)}
    if steps.loop is not None:
        found["loop_peak"] = _loop(steps.loop)["peak"]
    return found


def main() -> None:
    request = json.loads(sys.argv[1])
    found = measure_untraced(request) if "compiled" in request else measure(request)
    Path(request["answer"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
