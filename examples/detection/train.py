"""Train the detector in less memory than `fit` takes, and compare the losses with `fit`'s own.

::

    python examples/detection/train.py                     # all three runs, then the comparison
    python examples/detection/train.py --plain             # `fit` as it is, with no limit
    python examples/detection/train.py --plain --memory 220MiB     # in so much: it dies
    python examples/detection/train.py --shrunk --memory 220MiB    # what snugly.shrink makes of it

The limit is on TensorFlow's allocator, for which predictions are made: what the process takes
besides (Python, TensorFlow's libraries) does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from comparing import STEPS, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    import keras
    import tensorflow as tf

MEMORY = "220MiB"
"""More than the shrunk model takes, less than `fit` does, at the sizes below."""
ROOM = 0.9
"""Of the limit, what a step is to take: on a CPU the pictures that wait for it come from the same
allocator, which also loses some of its memory to gaps."""

STRIDE = 8
"""Of the coarsest features of the backbone: finer ones are added to them, so it divides sides."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as asked for; 0 where all went as it should."""
    asked = _asked(arguments)
    if asked.plain or asked.shrunk:
        result = train(asked)
        if asked.result:
            Path(asked.result).write_text(json.dumps(result))
        return 0
    signal.signal(signal.SIGTERM, _stop)  # as Ctrl-C: the runs that are going on end as well
    try:
        return compare(asked)
    except KeyboardInterrupt:
        print("\nstopped; nothing is left behind", file=sys.stderr)
        return 130


def train(asked: argparse.Namespace) -> dict[str, Any]:
    """One run in this process: the losses, and the most that TensorFlow's allocator gave."""
    limit(asked.memory)
    import keras
    import tensorflow as tf
    from detector import build
    from shapes import batches

    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(asked.seed)
    model = build(asked.side, asked.seed)
    dataset = batches(STEPS, asked.batch_size, asked.side, asked.seed)
    if asked.shrunk:
        model = shrunk(model, dataset, asked.memory)
    history = model.fit(dataset, epochs=asked.epochs, shuffle=False, verbose=2).history
    device = "GPU:0" if tf.config.list_logical_devices("GPU") else "CPU:0"
    peak = tf.config.experimental.get_memory_info(device)["peak"]
    return {"peak": peak, **history}


def shrunk(model: keras.Model, dataset: tf.data.Dataset, memory: str) -> keras.Model:
    """The same detector, so that it trains in this memory; what was done to it is printed."""
    import snugly

    small = snugly.shrink(model, dataset, memory=int(ROOM * snugly.Size(memory)))
    print(small)
    return small.model


def limit(memory: str | None) -> None:
    """Let TensorFlow's allocator have so much and no more; before TensorFlow is used."""
    from snugly import Size

    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"  # counts every byte, and can be limited
    if memory is None:
        return
    megabytes = int(Size(memory)) >> 20
    os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(megabytes)
    import tensorflow as tf

    for gpu in tf.config.list_physical_devices("GPU"):
        only = tf.config.LogicalDeviceConfiguration(memory_limit=megabytes)
        tf.config.set_logical_device_configuration(gpu, [only])


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _size(text: str) -> str:
    from snugly import Size
    from snugly.errors import SnuglyError

    try:
        Size(text)
    except SnuglyError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from problem
    return text


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--plain", action="store_true", help="only `fit`, in this process")
    way.add_argument("--shrunk", action="store_true", help="only the shrunk model, likewise")
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=_size,
        help=f"what TensorFlow may have; {MEMORY}, but with --plain no limit, unless it is given",
    )
    parser.add_argument("--epochs", type=int, default=3, help=f"of {STEPS} steps each")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--side", type=int, default=96, help="of the images, in pixels")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--result", metavar="FILE", help="also write peak and losses as JSON")
    asked = parser.parse_args(arguments)
    if asked.epochs < 2:  # noqa: PLR2004  # losses are to be seen falling
        parser.error("--epochs must be at least 2")
    if asked.batch_size < 1:
        parser.error("--batch-size must be at least 1")
    if asked.side < STRIDE or asked.side % STRIDE:
        parser.error(f"--side must be a multiple of {STRIDE}: the pyramid halves it so often")
    if not asked.plain and asked.memory is None:
        asked.memory = MEMORY
    return asked


if __name__ == "__main__":
    sys.exit(main())
