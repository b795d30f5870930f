"""What recording costs: the time of training steps, alone and under each mode of `snugly profile`.

    python benchmarks/recording.py [--repeats 3] [--only cnn]

Each run is a process of its own; the modes take turns, and the fastest run of each counts. The time
is that of all steps together after the first ones, so what happens between windows is in it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MODES = ("none", "samples", "windows", "full")
GOALS = {"samples": 2, "full": 15}  # per cent

_BEGIN = """
import json, sys, time
import keras, numpy as np
from keras import layers
"""
_END = """
for _ in range(3):
    model.train_on_batch(x, y)
began = time.perf_counter()
for _ in range(STEPS):
    model.train_on_batch(x, y)
json.dump({"seconds": (time.perf_counter() - began) / STEPS}, open(sys.argv[1], "w"))
"""
PROGRAMS = {
    "resnet50": """
STEPS = 12
model = keras.applications.ResNet50(weights=None, input_shape=(128, 128, 3), classes=10)
model.compile("adam", "sparse_categorical_crossentropy")
x, y = np.zeros((8, 128, 128, 3), "float32"), np.zeros(8)
""",
    "cnn": """
STEPS = 80
model = keras.Sequential([layers.Input((64, 64, 3))])
for filters in (32, 64, 128):
    model.add(layers.Conv2D(filters, 3, padding="same"))
    model.add(layers.BatchNormalization())
    model.add(layers.ReLU())
    model.add(layers.MaxPooling2D())
model.add(layers.Flatten())
model.add(layers.Dense(10))
model.compile("adam", "mse")
x, y = np.zeros((32, 64, 64, 3), "float32"), np.zeros((32, 10))
""",
    "transformer": """
STEPS = 40
inputs = keras.Input((64,), dtype="int32")
x = layers.Embedding(5000, 128)(inputs)
for _ in range(3):
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 32)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(128)(layers.Dense(512, activation="gelu")(x)))
model = keras.Model(inputs, layers.Dense(5000)(x))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss)
x, y = np.zeros((16, 64), "int32"), np.zeros((16, 64), "int32")
""",
    "mlp": """
STEPS = 1500
model = keras.Sequential([layers.Input((64,))])
for _ in range(4):
    model.add(layers.Dense(256, activation="relu"))
model.add(layers.Dense(10))
model.compile("adam", "mse")
x, y = np.zeros((32, 64), "float32"), np.zeros((32, 10))
""",
}


def seconds_per_step(program: str, mode: str, folder: Path) -> float:
    """Run a program once; what it says of itself."""
    script, answer = folder / "program.py", folder / "answer.json"
    script.write_text(_BEGIN + PROGRAMS[program] + _END)
    command = [str(script), str(answer)]
    if mode != "none":
        record = str(folder / "run.snugly")
        command = ["-m", "snugly", "profile", "--trace", mode, "-o", record, *command]
    # The same allocator for all: what it costs is not the recording's.
    environment = os.environ | {"TF_CPU_ALLOCATOR_USE_BFC": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run(
        [sys.executable, *command], env=environment, check=True, capture_output=True, cwd=folder
    )
    return json.loads(answer.read_text())["seconds"]


def main() -> None:
    """Print one line for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=PROGRAMS)
    parser.add_argument("--modes", nargs="+", choices=MODES[1:], default=MODES[1:])
    arguments = parser.parse_args()
    modes = ("none", *arguments.modes)
    print("program      step     " + "".join(f"{mode:>10}" for mode in modes[1:]))
    for program in [arguments.only] if arguments.only else PROGRAMS:
        fastest = dict.fromkeys(modes, float("inf"))
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(arguments.repeats):
                for mode in modes:
                    taken = seconds_per_step(program, mode, Path(folder))
                    fastest[mode] = min(fastest[mode], taken)
        cost = "".join(f"{(fastest[mode] / fastest['none'] - 1):+10.1%}" for mode in modes[1:])
        print(f"{program:12} {fastest['none'] * 1000:6.1f} ms {cost}", flush=True)
    print("goals: " + ", ".join(f"{mode} under {goal} %" for mode, goal in GOALS.items()))


if __name__ == "__main__":
    main()
