"""Does what `shrink` says it fits really train? `python -m tests.accuracy.shrunk_fits [MODEL …]`.

Each model is shrunk to shares of what it needs, and then trained by `fit` in a process of its own
whose allocator has the budget and no more. Nobody may die whom `shrink` has let go: goal 0.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.recording.allocator import CPU_LIMIT, USE_BFC

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARES = (0.75, 0.6, 0.5)
FEEDS = ("dataset", "generator", "prefetched")
STEPS, EPOCHS = 6, 2
MEBIBYTE = 1 << 20
PATIENCE = 600
REFUSED, DIED, TRAINED = "refused", "DIED", "trained"


def batches(model: Any, batch: int) -> tuple[Any, Any]:
    """A batch of numbers that a model takes, and targets of which its losses are numbers."""
    import tensorflow as tf

    from snugly.readers.dimensions import Dimensions
    from snugly.readers.keras_model import input_specs, target_specs

    inputs = input_specs(model, Dimensions(batch, {}))
    targets = target_specs(model, inputs)

    def drawn(spec: Any) -> Any:
        if spec.dtype.is_integer:
            return np.random.default_rng(0).integers(0, 2, spec.shape).astype("int32")
        values = np.random.default_rng(0).normal(size=spec.shape)
        return values.astype(spec.dtype.as_numpy_dtype)

    return tf.nest.map_structure(drawn, inputs), tf.nest.map_structure(drawn, targets)


def fed(feed: str, x: Any, y: Any, batch: int) -> Any:
    """The same batch again and again: by a generator, or by a dataset that has one example."""
    import tensorflow as tf

    def arrays() -> Iterator[Any]:
        while True:
            yield tf.nest.map_structure(np.copy, (x, y))

    if feed == "generator":
        return arrays()
    first = tf.nest.map_structure(lambda array: array[:1], (x, y))
    dataset = tf.data.Dataset.from_tensor_slices(first).repeat().batch(batch, drop_remainder=True)
    return dataset.prefetch(1) if feed == "prefetched" else dataset


def child(name: str, memory: int, feed: str, allow: str) -> dict[str, Any]:
    """Shrink and train in this very process, whose allocator is limited."""
    from tests.accuracy.shrinkable import SUBJECTS

    import snugly
    from snugly.recording import allocator

    subject = SUBJECTS[name]
    model = subject.build()
    begun = time.process_time()
    try:
        small = snugly.shrink(model, memory=memory, batch_size=subject.batch, allow=allow)
    except snugly.MemoryLimitExceeded as problem:
        return {"outcome": REFUSED, "message": problem.message}
    seconds = time.process_time() - begun
    assert small.prediction.budget is not None
    assert small.batch_size is not None
    said = {
        "changes": [change.name for change in small.plan.changes],
        "high": int(small.prediction.high),
        "room": int(small.prediction.budget.bytes),
        "seconds": seconds,
    }
    print(json.dumps({"outcome": DIED, **said}), flush=True)
    x, y = batches(small.model, small.batch_size)
    data = fed(feed, x, y, small.batch_size)
    small.model.fit(data, epochs=EPOCHS, steps_per_epoch=STEPS, verbose=0)
    info = allocator.memory_info("CPU:0")
    return {"outcome": TRAINED, **said, "peak": info.peak if info else 0}


def ask(name: str, memory: int, feed: str, allow: str) -> dict[str, Any]:
    """Run a child; what it said last, and how it ended."""
    limit = {USE_BFC: "1", CPU_LIMIT: str(memory // MEBIBYTE), "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-m", __spec__.name, "--child", name, str(memory), feed, allow]
    ended = subprocess.run(
        command, env=os.environ | limit, capture_output=True, timeout=PATIENCE, check=False
    )
    lines = [line for line in ended.stdout.decode().splitlines() if line.startswith("{")]
    found = json.loads(lines[-1]) if lines else {"outcome": "broken"}
    if found["outcome"] not in {TRAINED, REFUSED}:
        found["message"] = f"exit {ended.returncode}: {ended.stderr.decode()[-1500:]}"
    return found


def needs(name: str) -> int:
    """What a model's plain step is predicted to need at most."""
    from tests.accuracy.shrinkable import SUBJECTS

    import snugly

    subject = SUBJECTS[name]
    return int(snugly.predict(subject.build(), batch_size=subject.batch, training=True).high)


def main() -> int:
    """Every model, or those that are named; 1 where one died that was said to fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--shares", nargs="*", type=float, default=SHARES)
    parser.add_argument("--feeds", nargs="*", default=FEEDS, choices=FEEDS)
    parser.add_argument("--allow", default="same-result")
    parser.add_argument("--child", nargs=4, metavar=("MODEL", "BYTES", "FEED", "ALLOW"))
    asked = parser.parse_args()
    if asked.child:
        name, memory, feed, allow = asked.child
        print(json.dumps(child(name, int(memory), feed, allow)), flush=True)
        return 0
    from tests.accuracy.shrinkable import SUBJECTS

    counts = dict.fromkeys((TRAINED, REFUSED, DIED, "broken"), 0)
    feeds = itertools.cycle(asked.feeds)
    for name in asked.models or SUBJECTS:
        plain = needs(name)
        for share in asked.shares:
            memory = int(plain * share) // MEBIBYTE * MEBIBYTE
            feed = next(feeds)
            found = ask(name, memory, feed, asked.allow)
            counts[found["outcome"]] += 1
            figures = [
                f"{word} {found[word] / MEBIBYTE:.1f}"
                for word in ("room", "high", "peak")
                if word in found
            ]
            print(
                f"{name:16} {share:4} {memory >> 20:5} MiB {feed:10} {found['outcome']:8}"
                f" {' '.join(figures)} {found.get('changes', '')} {found.get('message', '')}",
                f"{found.get('seconds', 0):.0f} s" if "seconds" in found else "",
                flush=True,
            )
    print(counts)
    return 1 if counts[DIED] or counts["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
