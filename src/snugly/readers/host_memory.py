"""A tensor's numbers as an array: its own memory on the host, a copy from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np


def array_of(tensor: Any) -> np.ndarray:
    """A tensor's numbers, without a copy where it lies in host memory; not to be written to."""
    if "CPU" not in tensor.device:
        return tensor.numpy()
    try:
        return np.asarray(memoryview(tensor))
    except (TypeError, ValueError, BufferError):  # bfloat16 has no buffer format
        return tensor.numpy()
