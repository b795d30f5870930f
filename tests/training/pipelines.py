"""A dozen pipelines of many kinds, and how one is measured in a process of its own."""

import json
import os
import sys
import time

MIB = 2**20
SECONDS = 2.0
"""How long a pipeline runs before its peak is read: buffers are full after the first elements."""


def large(number):
    """A tensor of 4 MiB."""
    import tensorflow as tf

    return tf.fill((512, 512, 4), tf.cast(number, tf.float32))


def image(number):
    """Bytes that become floats, as images do: 3 MiB."""
    import tensorflow as tf

    return tf.cast(tf.fill((512, 512, 3), tf.cast(number % 200, tf.uint8)), tf.float32) / 255.0


def encoded(number):
    """A JPEG of 1024 × 768 pixels."""
    import tensorflow as tf

    shade = tf.cast(number % 200, tf.uint8)
    return tf.io.encode_jpeg(tf.fill((768, 1024, 3), shade))


def decoded(data):
    """Decoded, of unknown shape, and brought to 256 × 256."""
    import tensorflow as tf

    return tf.image.resize(tf.cast(tf.io.decode_jpeg(data, channels=3), tf.float32), (256, 256))


def whole(data):
    """Decoded at its own size."""
    import tensorflow as tf

    return tf.cast(tf.io.decode_jpeg(data, channels=3), tf.float32)


def four_of(tensor):
    """Augmentation that makes four images of one."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(tf.stack([tensor, tensor, tensor, tensor]))


def make(name):  # noqa: C901, PLR0911, PLR0912 - a list
    """The pipeline of a name."""
    import numpy as np
    import tensorflow as tf

    data, auto = tf.data.Dataset, tf.data.AUTOTUNE
    numbers = data.range(100_000)
    match name:
        case "shuffle of tensors":
            return numbers.map(large).shuffle(64)
        case "shuffle of numbers":
            return data.range(5_000_000).shuffle(2_000_000)
        case "slices of an array":
            return data.from_tensor_slices(np.ones((64, 512, 512, 4), np.float32)).batch(4)
        case "parallel map":
            return numbers.map(large, num_parallel_calls=16)
        case "batch":
            return numbers.map(large).batch(16).prefetch(1)
        case "batch and prefetch":
            return numbers.map(large, num_parallel_calls=2).batch(8).prefetch(4)
        case "autotuned":
            return numbers.map(large, num_parallel_calls=auto).batch(8).prefetch(auto)
        case "cache":
            return data.range(60).map(large).cache()
        case "cache and shuffle":
            return data.range(60).map(large).cache().shuffle(30).batch(4)
        case "images as floats":
            return numbers.map(image, num_parallel_calls=2).shuffle(50).batch(8).prefetch(2)
        case "window":
            windows = numbers.map(large).window(16, shift=16)
            return windows.flat_map(lambda window: window.batch(16)).prefetch(2)
        case "augmentation that multiplies":
            return numbers.map(large).flat_map(four_of).shuffle(32).batch(4)
        case "decoded images":
            records = numbers.map(encoded).map(whole, num_parallel_calls=2)
            return records.shuffle(20).batch(2).prefetch(2)
        case "repeat and take":
            return data.range(8).map(large).repeat().take(500).shuffle(40).batch(2).prefetch(3)
    raise AssertionError(name)


NAMES = (
    "shuffle of tensors",
    "shuffle of numbers",
    "slices of an array",
    "parallel map",
    "batch",
    "batch and prefetch",
    "autotuned",
    "cache",
    "cache and shuffle",
    "images as floats",
    "window",
    "augmentation that multiplies",
    "decoded images",
    "repeat and take",
)


def measure(name):
    """Predicted and measured peak of a pipeline, in this fresh process."""
    import tensorflow as tf

    from snugly.devices.process import ResidentPeak, resident_bytes
    from snugly.training import input_pipeline

    for _ in tf.data.Dataset.range(100).shuffle(10).map(lambda n: n + 1).batch(3).prefetch(1):
        pass
    before, watch = resident_bytes(), ResidentPeak()
    dataset = make(name)
    started = time.perf_counter()
    for _element in dataset:
        time.sleep(0.02)  # a training step: slower than the pipeline, so that buffers are full
        if time.perf_counter() - started > SECONDS:
            break
    measured = watch.read() - before
    predicted = input_pipeline.predict(make(name), sample=4)
    return {"name": name, "predicted": int(predicted.peak), "measured": measured}


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stdout.write(json.dumps(measure(sys.argv[1])))
