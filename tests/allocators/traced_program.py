"""Run a small TensorFlow program and print every allocator event as JSON.

Started in a fresh process by `test_bfc_against_tensorflow.py`: the allocator is chosen when
TensorFlow is first imported, and the profiler must run before anything is allocated.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf

MIB = 1 << 20


def train_a_convolutional_net() -> None:
    keras = tf.keras
    model = keras.Sequential(
        [
            keras.layers.Input((28, 28, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.MaxPool2D(),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    for _ in range(3):
        model.train_on_batch(np.zeros((32, 28, 28, 1), "float32"), np.zeros(32, "int64"))


def hold_tensors_of_all_sizes() -> None:
    """Up to the limit of 500 MiB, which cuts the last region; splits a surplus over 128 MiB."""
    choose = random.Random(0)  # noqa: S311  # no secret
    held: list[Any] = []
    for _ in range(400):
        if held and choose.random() < 0.45:
            held.pop(choose.randrange(len(held)))
        held.append(untouched(int(2 ** choose.uniform(0, 22))))
    held.clear()
    held.append(untouched(300 * MIB))
    held.clear()
    held.append(untouched(200 * MIB))
    held.append(untouched(60 * MIB))


def untouched(size: int) -> Any:
    """A tensor whose bytes are allocated but never written."""
    return tf.raw_ops.Empty(shape=tf.constant([size]), dtype=tf.uint8, init=False)


def allocator_events(folder: Path) -> list[dict[str, Any]]:
    """The events of the host's allocators, in order: their times are taken under its lock."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    space.ParseFromString(next(folder.rglob("*.xplane.pb")).read_bytes())
    plane = next(plane for plane in space.planes if plane.name == "/host:CPU")
    timed: list[tuple[int, dict[str, Any]]] = []
    for line in plane.lines:
        for event in line.events:
            name = plane.event_metadata[event.metadata_id].name
            if name in {"MemoryAllocation", "MemoryDeallocation"}:
                facts: dict[str, Any] = {"birth": name == "MemoryAllocation"}
                for stat in event.stats:
                    value = getattr(stat, stat.WhichOneof("value"))
                    facts[plane.stat_metadata[stat.metadata_id].name] = value
                timed.append((line.timestamp_ns * 1000 + event.offset_ps, facts))
    timed.sort(key=lambda entry: entry[0])
    return [facts for _, facts in timed]


def main(program: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        {"train": train_a_convolutional_net, "sizes": hold_tensors_of_all_sizes}[program]()
        tf.profiler.experimental.stop()
        peak = tf.config.experimental.get_memory_info("CPU:0")["peak"]
        json.dump({"peak": peak, "events": allocator_events(Path(folder))}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
