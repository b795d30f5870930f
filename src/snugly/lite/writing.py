"""A `.tflite` file with another offline memory plan, and its operators in another order.

Nothing else is changed: weights, options, quantisation, names and other metadata are the very bytes
of the old file. Without TensorFlow and without the flatbuffers package.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from snugly.errors import InputError
from snugly.lite.rewriting_layout import Fields, Number, Old, Vector, data, lay_out, text
from snugly.lite.rewriting_tables import LARGEST_FILE, copied
from snugly.readers.tflite.constants import BUFFERS
from snugly.readers.tflite.flatbuffer import UINT64, Buffer
from snugly.readers.tflite.read import OFFLINE_PLAN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.lite.rewriting_layout import Target
    from snugly.readers.tflite import LiteModel

# Numbers of fields, schema.fbs: Model, SubGraph, Buffer, Operator, Metadata.
SUBGRAPHS: Final = 2
METADATA: Final = 6
OPERATORS: Final = 3
BUFFER_OFFSET: Final = 1
LARGE_OPTIONS_OFFSET: Final = 9
PLAN_VERSION: Final = 1  # micro_allocation_info.cc does not look at it; Vela writes 1


def write_plan(
    source: bytes,
    model: LiteModel,
    offsets: Sequence[int] | None,
    orders: Mapping[int, Sequence[int]] | None = None,
) -> bytes:
    """The file with this plan instead of the one that it may carry.

    Args:
        source: The bytes of the file.
        model: What it says.
        offsets: Of every tensor of every subgraph; -1 leaves a tensor to the run. None: no plan.
        orders: Of a subgraph, the indices of its operators in the order in which they shall run.
    """
    return _Writing(source, model).finish(offsets, orders or {})


class _Writing:
    def __init__(self, source: bytes, model: LiteModel) -> None:
        self._source = source
        self._model = model
        self._buffer = Buffer(source)
        self._root = self._buffer.root()
        self._buffers = self._root.tables(BUFFERS)
        self._subgraphs = self._root.tables(SUBGRAPHS)
        operators = (one for part in self._subgraphs for one in part.tables(OPERATORS))
        if any(table.number(BUFFER_OFFSET, UINT64) > 1 for table in self._buffers) or any(
            table.number(LARGE_OPTIONS_OFFSET, UINT64) > 1 for table in operators
        ):
            raise InputError(
                "the model keeps its constants after the flatbuffer, as files of more than 2 GiB"
                " do; no microcontroller runs it, and it cannot be rewritten",
                code="SNG568",
            )

    def finish(self, offsets: Sequence[int] | None, orders: Mapping[int, Sequence[int]]) -> bytes:
        changes: dict[int, Number | Target | None] = {}
        if orders:
            changes[SUBGRAPHS] = Vector([self._ordered(i, orders) for i in range(self._count)])
        buffers: list[Target] = [Old(table.start) for table in self._buffers]
        entries: list[Target] = [
            Old(entry.start)
            for entry in self._root.tables(METADATA)
            if entry.text(0) != OFFLINE_PLAN
        ]
        if offsets is not None:
            entries.append(self._plan(offsets, buffers))
        changes[BUFFERS] = Vector(buffers)
        changes[METADATA] = Vector(entries) if entries else None
        root = copied(self._buffer, self._root, "Model", changes)
        result = lay_out(root, self._source)
        if len(result) > LARGEST_FILE:
            raise InputError("the rewritten model would have more than 2 GiB", code="SNG568")
        return result

    @property
    def _count(self) -> int:
        return len(self._subgraphs)

    def _plan(self, offsets: Sequence[int], buffers: list[Target]) -> Fields:
        """The metadata entry; its buffer takes the place of that of the old plan, if it can."""
        numbers = [PLAN_VERSION, self._count, len(offsets), *offsets]
        made = Fields({0: data(struct.pack(f"<{len(numbers)}i", *numbers))})
        old = self._model.metadata.get(OFFLINE_PLAN)
        if old is not None and not self._is_shared(old):
            buffers[old], number = made, old
        else:
            buffers.append(made)
            number = len(buffers) - 1
        return Fields({0: text(OFFLINE_PLAN), 1: Number("I", number)})

    def _is_shared(self, buffer: int) -> bool:
        users = [tensor.buffer for part in self._model.subgraphs for tensor in part.tensors]
        others = [one for name, one in self._model.metadata.items() if name != OFFLINE_PLAN]
        return buffer in users or buffer in others or not buffer

    def _ordered(self, number: int, orders: Mapping[int, Sequence[int]]) -> Target:
        table = self._subgraphs[number]
        if number not in orders:
            return Old(table.start)
        operators = table.tables(OPERATORS)
        chosen: list[Target] = [Old(operators[index].start) for index in orders[number]]
        changes: dict[int, Number | Target | None] = {OPERATORS: Vector(chosen)}
        return copied(self._buffer, table, "SubGraph", changes)
