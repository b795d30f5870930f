"""The constants of a `.tflite` file, read where they are asked for."""

from __future__ import annotations

import struct
from functools import cached_property
from typing import TYPE_CHECKING, Final

from snugly.readers.tflite.flatbuffer import Buffer

if TYPE_CHECKING:
    from snugly.readers.tflite.flatbuffer import Table
    from snugly.readers.tflite.model import LiteTensor

BUFFERS: Final = 4  # of Model, schema.fbs
MOST_INTEGERS: Final = 64
_INTEGERS: Final = {"INT32": "i", "INT64": "q"}


class Constants:
    """What stands in a file: shapes, axes and paddings that rules depend on, and weights."""

    def __init__(self, source: bytes) -> None:
        self._source = source

    @cached_property
    def _buffers(self) -> list[Table]:
        return Buffer(self._source).root().tables(BUFFERS)

    def content(self, tensor: LiteTensor) -> memoryview | None:
        """The bytes of a constant, not copied; None where it is none."""
        return self._buffers[tensor.buffer].bytes(0) if tensor.is_constant else None

    def integers(self, tensor: LiteTensor) -> tuple[int, ...] | None:
        """The value of a constant of int32 or int64; None where it is none, or not small."""
        code = _INTEGERS.get(tensor.type.name)
        if code is None or tensor.elements > MOST_INTEGERS:
            return None
        content = self.content(tensor)
        if content is None or len(content) != tensor.elements * struct.calcsize("<" + code):
            return None
        return struct.unpack(f"<{tensor.elements}{code}", content)
