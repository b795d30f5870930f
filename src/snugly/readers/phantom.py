"""Variables that have a size but no memory, for a compiler that reads only their shapes.

Their pages are mapped but never touched, so the system provides none: a phantom of 40 GB costs
nothing on a laptop.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np

_MAP_NORESERVE = 0x4000  # linux/mman.h; Python's mmap module has the name from 3.13 on
# What carries so many bytes an element into TensorFlow; the type itself is put on afterwards.
_CARRIERS = {1: np.uint8, 2: np.float16, 4: np.float32, 8: np.float64, 16: np.complex128}


def phantom_variable(dtype: int, shape: tuple[int, ...]) -> Any:
    """An initialised variable of this type and shape. Its value must never be read."""
    import tensorflow as tf

    kind = tf.as_dtype(dtype)
    count = math.prod(shape)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    pages = mmap.mmap(-1, max(1, count) * kind.size, flags=flags)
    array = np.frombuffer(pages, _CARRIERS[kind.size])[:count].reshape(shape)
    value = tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    if value.dtype != kind:
        value = tf.bitcast(value, kind)
    return tf.Variable(value, trainable=False)
