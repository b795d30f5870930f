"""Jacobians under random budgets: `python -m tests.accuracy.jacobians --cases 300`.

Each case is a random model, shape, type and budget. Either the measured peak stays inside the
budget, or the call is refused before it runs with a least that would do, and that least is then
given and held. Peaks are the bytes requested of TensorFlow's allocator, every block of them, less
what was there before (the allocator that keeps such a trace, BFC, gives up to twice what is asked
for; TensorFlow's usual one on a CPU does not). Rows are compared with `tape.gradient`. A peak below
the result would mean that nothing was measured, and fails the case.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import argparse
import gc
import os
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"  # the allocator whose trace has every block

import numpy as np
import tensorflow as tf

import snugly
from snugly.graph import Kind
from snugly.timeline import Span, Timeline

KINDS = ("dense", "conv", "mixing", "elementwise", "wide", "tall", "deep", "weights", "layers")
SMALLEST, LARGEST = 4 << 20, 64 << 20  # bytes of a result


def make(draw: random.Random) -> tuple[str, Any, Any, dict[str, Any]]:
    """A random function, its input, and the options to call with."""
    kind = draw.choice(KINDS)
    dtype = draw.choice((tf.float32, tf.float32, tf.float64))
    batch = draw.choice((1, 2, 3, 8))
    options: dict[str, Any] = {}
    numbers = np.random.default_rng(draw.randrange(1 << 30))

    def array(*shape: int) -> Any:
        return tf.constant(numbers.normal(size=shape) * 0.2, dtype)

    def weights(*shape: int) -> Any:
        return tf.Variable(array(*shape))

    if kind in {"deep", "weights", "layers"}:
        return kind, *network(kind, draw, batch, array)
    if kind == "conv":
        return kind, *convolutions(draw, batch, array), options
    inputs, hidden, outputs = (draw.randrange(20, 500) for _ in range(3))
    if kind == "wide":
        inputs, outputs = inputs * 10, max(2, outputs // 10)
    elif kind == "tall":
        inputs, outputs = max(2, inputs // 10), outputs * 10
    left, right = weights(inputs, hidden), weights(hidden, outputs)
    if kind == "elementwise":
        return kind, lambda x: tf.sin(x) * x, array(inputs * 4), options
    if kind == "mixing":
        return (
            kind,
            lambda x: tf.tanh((x - tf.reduce_mean(x, 0)) @ left) @ right,
            array(batch, inputs),
            options,
        )
    if draw.random() < 0.3:
        options["per_example"] = True
    return kind, lambda x: tf.tanh(x @ left) @ right, array(batch, inputs), options


def convolutions(draw: random.Random, batch: int, array: Any) -> tuple[Any, Any]:
    """Two convolutions with a relu between them."""
    side, channels = draw.randrange(8, 25), draw.randrange(2, 17)
    first = tf.Variable(array(3, 3, 3, channels))
    second = tf.Variable(array(3, 3, channels, 4))

    def conv(x: Any) -> Any:
        hidden = tf.nn.relu(tf.nn.conv2d(x, first, 1, "SAME"))
        return tf.nn.conv2d(hidden, second, 2, "SAME")

    return conv, array(batch, side, side, 3)


def network(
    kind: str, draw: random.Random, batch: int, array: Any
) -> tuple[Any, Any, dict[str, Any]]:
    """A Keras model of random depth and widths, by its input or by its weights."""
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(draw.randrange(1 << 30))
    tf.keras.config.set_dtype_policy(array(1).dtype.name)
    if kind == "layers":
        steps, width = draw.randrange(4, 24), draw.randrange(8, 64)
        inputs = tf.keras.Input((steps, width))
        inner = draw.choice(
            (
                layers.LSTM(width, return_sequences=True),
                layers.GRU(width, return_sequences=True),
                layers.MultiHeadAttention(2, max(2, width // 2)),
            )
        )
        attends = isinstance(inner, layers.MultiHeadAttention)
        hidden = inner(inputs, inputs) if attends else inner(inputs)
        model = tf.keras.Model(inputs, layers.Dense(draw.randrange(8, 64))(hidden))
        return model, array(batch, steps, width), {}
    side = draw.randrange(8, 33)
    parts: list[Any] = [tf.keras.Input((side, side, 3))]
    for _ in range(draw.randrange(1, 5)):
        filters = draw.randrange(4, 33)
        parts += [layers.Conv2D(filters, 3, padding="same"), layers.BatchNormalization()]
        parts += [layers.Activation(draw.choice(("relu", "tanh", "gelu")))]
    parts += [layers.MaxPooling2D(), layers.Flatten(), layers.Dense(draw.randrange(4, 200))]
    model = tf.keras.Sequential(parts)
    options = {"wrt": model.trainable_variables} if kind == "weights" else {}
    return model, array(batch, side, side, 3), options


def measured(f: Any, x: Any, memory: int, options: dict[str, Any]) -> tuple[int, Any]:
    """Peak beside weights and inputs, and the Jacobian; MemoryError where it is refused."""
    snugly.jacobian(f, x, memory=memory, **options)  # traces; the peak counts from the next on
    gc.collect()
    with (
        tempfile.TemporaryDirectory() as folder,
        snugly.record(Path(folder) / "run.snugly") as record,
    ):
        found = snugly.jacobian(f, x, memory=memory, **options)
    made = [span for span in record.timeline.spans if not was_there(span)]
    return Timeline(made, record.timeline.length).peak()[1], found


def was_there(span: Span) -> bool:
    """Whether a buffer is from before the call: a weight, an input, or what earlier cases left.

    Of long recordings the stretch around the peak is kept, so what a call made may begin at 0, too.
    """
    earlier = span.kind in {Kind.WEIGHT, Kind.INPUT} or "before the recording" in span.operation
    return span.birth == 0 and earlier


def is_right(f: Any, x: Any, found: Any, draw: random.Random, options: dict[str, Any]) -> bool:
    """Whether some rows are those of `tape.gradient`."""
    by = [getattr(v, "value", v) for v in options.get("wrt", [x])]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(by)
        output = f(x)
        flat = tf.reshape(output, (-1,))
        places = [draw.randrange(int(flat.shape[0])) for _ in range(3)]
        entries = [flat[place] for place in places]
    tolerance = 1e-5 if computes_in_float32(f, x) else 1e-10
    parts = found if "wrt" in options else [found]
    for place, entry in zip(places, entries, strict=True):
        index = np.unravel_index(place, output.shape)
        gradients = tape.gradient(entry, by)
        largest = max(float(np.abs(g).max()) for g in gradients)
        for part, gradient in zip(parts, gradients, strict=True):
            expected = gradient.numpy()
            if options.get("per_example"):
                expected = expected[index[0]]
            row = np.asarray(part)[index]
            if not np.allclose(row, expected, rtol=tolerance, atol=tolerance * largest):
                return False
    return True


def computes_in_float32(f: Any, x: Any) -> bool:
    """Whether single precision is used anywhere: Keras's attention does so of float64, too."""
    graph = tf.function(f).get_concrete_function(x).graph
    tensors = (tensor for op in graph.get_operations() for tensor in op.outputs)
    return any(t.dtype == tf.float32 and t.shape.rank for t in tensors)


def run_case(number: int, seed: int) -> tuple[bool, str]:
    """One case: whether it held, and what happened."""
    draw = random.Random(f"{seed}-{number}")  # noqa: S311 - the same cases every time
    whole = 0
    while not SMALLEST <= whole <= LARGEST:
        kind, f, x, options = make(draw)
        output = f(x)
        by = options.get("wrt", [x])
        whole = int(tf.size(output)) * sum(int(np.prod(v.shape)) for v in by) * x.dtype.size
        if options.get("per_example"):
            whole //= x.shape[0]
    budget = int(whole * draw.choice((0.5, 1.0, 1.02, 1.05, 1.1, 1.3, 2, 5))) + draw.choice(
        (0, 70_000, 1 << 20)
    )
    label = f"{number} {kind} {x.shape}→{output.shape} {x.dtype.name} J={whole:,} budget={budget:,}"
    refused = ""
    try:
        peak, found = measured(f, x, budget, options)
    except MemoryError as error:
        stated = re.search(r"memory=(\d+)", getattr(error, "hint", ""))
        if stated is None:
            return False, f"{label}: refused without a least"
        refused, budget = " (refused, then the least)", int(stated[1])
        try:
            peak, found = measured(f, x, budget, options)
        except MemoryError as again:
            return False, f"{label}: the least that was named is refused too: {again}"
    if peak < whole:
        return False, f"{label}: peak {peak:,} is less than the result; nothing was measured"
    if peak > budget:
        return False, f"{label}: peak {peak:,} over {budget:,}{refused}"
    if not is_right(f, x, found, draw, options):
        return False, f"{label}: WRONG"
    return True, f"{label}: peak {peak:,} inside {budget:,}{refused}"


def main() -> int:
    """Run so many cases and say which did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    held = 0
    for number in range(options.first, options.first + options.cases):
        fine, text = run_case(number, options.seed)
        held += fine
        if options.verbose or not fine:
            print(text, flush=True)
        tf.keras.backend.clear_session()
        gc.collect()
    print(f"{held} of {options.cases} cases held")
    return 0 if held == options.cases else 1


if __name__ == "__main__":
    sys.exit(main())
