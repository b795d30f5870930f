"""Variables that have a size but no memory, for a compiler that reads only their shapes.

On the CPU their pages are mapped but never touched, so the system provides none: a phantom of 40 GB
costs nothing on a laptop. On a GPU they have an address of this process, which no kernel ever sees.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from typing import Any

_MAP_NORESERVE = 0x4000  # linux/mman.h; Python's mmap module has the name from 3.13 on


class _Description(ctypes.Structure):
    """DLManagedTensor of dlpack.h, version 0: how an array's memory is handed to TensorFlow."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_DEVICE_TYPES = {"CPU": 1, "GPU": 2}
_UNSIGNED, _FLOAT, _COMPLEX, _BOOL = 1, 2, 5, 6
# What carries so many bytes an element into TensorFlow; the type itself is put on afterwards. Only
# booleans come as themselves: TensorFlow casts nothing to them.
_CARRIERS = {1: _UNSIGNED, 2: _FLOAT, 4: _FLOAT, 8: _FLOAT, 16: _COMPLEX}

# All phantoms share one mapping, kept because TensorFlow may drop a variable at any later time.
_mappings: list[mmap.mmap] = []


def phantom_variable(dtype: int, shape: tuple[int, ...], device: str = "CPU") -> Any:
    """An initialised variable of this type and shape. Its value must never be read."""
    import tensorflow as tf

    kind = tf.as_dtype(dtype)
    carrier = _BOOL if kind == tf.bool else _CARRIERS[kind.size]
    with tf.device(f"{device}:0"):
        value = tf.experimental.dlpack.from_dlpack(_capsule(carrier, kind.size, shape, device))
        # Neither touches the memory: the one casts a pointer, the other shares a buffer.
        typed = value if value.dtype == kind else tf.bitcast(value, kind)
        return tf.Variable(typed, trainable=False)


def _capsule(carrier: int, item_bytes: int, shape: tuple[int, ...], device: str) -> Any:
    """What TensorFlow takes an array's memory from. It frees the description, never the memory."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    header = ctypes.sizeof(_Description)
    place = library.malloc(header + len(shape) * ctypes.sizeof(ctypes.c_int64))
    sizes = (ctypes.c_int64 * len(shape)).from_address(place + header)
    sizes[:] = shape
    description = _Description.from_address(place)
    description.data = _address_of(math.prod(shape) * item_bytes)
    description.device_type, description.device_index = _DEVICE_TYPES[device], 0
    description.rank, description.shape, description.strides = len(shape), place + header, None
    description.type_code, description.type_bits = carrier, item_bytes * 8
    description.type_lanes, description.byte_offset, description.manager = 1, 0, None
    description.deleter = ctypes.cast(library.free, ctypes.c_void_p)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(place, b"dltensor", None)


def _address_of(size: int) -> int:
    """Where at least so many bytes are mapped, all zero and not backed by memory."""
    if not _mappings or len(_mappings[-1]) < size:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        room = max(2 * size, mmap.PAGESIZE)
        _mappings.append(mmap.mmap(-1, room, flags=flags))
    return ctypes.addressof(ctypes.c_char.from_buffer(_mappings[-1]))
