"""TensorLists, which carry values across the turns of a loop: who holds what, for how long.

A list is a handful of bytes that keeps its items alive. A longer list holds the shorter one it was
made from, so pushing and popping cost the same however long it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.graph.model import Kind, Operation
from snugly.readers.node import Value
from snugly.readers.slots import Slot

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.readers.operations import Call, Operations

# A list itself is one Variant, sizeof(Variant), tensorflow/core/framework/variant.h
VARIANT = 64
SECONDS = 2e-6  # one list operation, to an order of magnitude
# Lists that say they are longer are not followed item by item: that would cost what we promise not
# to allocate.
MOST_ITEMS = 1 << 20
HELD_BY_PUSHED = 2  # the list before, and the item


class Lists:
    """The list operators of one walk."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._tensor = operations.expansion.tensor
        # None where too little is known of a list to follow it item by item.
        self.visitors: dict[str, Callable[[Call], list[Slot] | None]] = {
            "EmptyTensorList": self._empty,
            "TensorListReserve": self._reserve,
            "TensorListPushBack": self._push,
            "TensorListPopBack": self._pop,
            "TensorListSetItem": self._set,
            "TensorListGetItem": self._get,
            "TensorListFromTensor": self._from_tensor,
            "ZerosLike": self._like,
            "AddN": self._like,
        }

    def _emit(self, call: Call, outputs: list[int], *, aliases: tuple[int, ...] = ()) -> None:
        inputs = tuple(slot.tensor for slot in call.data)
        self._operations.read(inputs)
        self._operations.expansion.emit(
            Operation(
                call.node.name,
                call.node.type,
                inputs,
                tuple(outputs),
                call.after,
                aliases=aliases,
                seconds=SECONDS,
            )
        )

    def _list(self, call: Call, items: tuple[Slot | None, ...], holds: tuple[int, ...]) -> Slot:
        size = 0 if self._operations.expansion.machine.device == "gpu" else VARIANT
        tensor = self._tensor(size, Kind.ACTIVATION, holds)
        return Slot(tensor, call.node.outputs[0], items=items)

    def _empty(self, call: Call) -> list[Slot]:
        slot = self._list(call, (), ())
        self._emit(call, [slot.tensor])
        return [slot]

    def _reserve(self, call: Call) -> list[Slot] | None:
        if call.data[1].known is None or int(call.data[1].known) > MOST_ITEMS:
            return None
        slot = self._list(call, (None,) * int(call.data[1].known), ())
        self._emit(call, [slot.tensor])
        return [slot]

    def _push(self, call: Call) -> list[Slot] | None:
        shorter, item = call.data
        if shorter.items is None:
            return None
        slot = self._list(call, (*shorter.items, item), (shorter.tensor, item.tensor))
        self._emit(call, [slot.tensor])
        return [slot]

    def _pop(self, call: Call) -> list[Slot] | None:
        longer = call.data[0]
        if not longer.items:
            return None
        # Without its item, a list made by pushing is the list before.
        holds = self._operations.expansion.graph.tensors[longer.tensor].holds
        held = holds[0] if len(holds) == HELD_BY_PUSHED else longer.tensor
        shorter = self._list(call, longer.items[:-1], (held,))
        item, alias = self._item(longer.items[-1], call.node.outputs[1], call.kind)
        self._emit(call, [shorter.tensor, item.tensor], aliases=(-1, alias))
        return [shorter, item]

    def _set(self, call: Call) -> list[Slot] | None:
        before, index, item = call.data[:3]
        if before.items is None or index.known is None:
            return None
        place = int(index.known)
        if not 0 <= place < MOST_ITEMS:
            return None
        items = list(before.items) + [None] * (place + 1 - len(before.items))
        replaced = items[place] is not None
        items[place] = item
        others = tuple(slot.tensor for slot in items if slot is not None)
        slot = self._list(call, tuple(items), others if replaced else (before.tensor, item.tensor))
        self._emit(call, [slot.tensor])
        return [slot]

    def _get(self, call: Call) -> list[Slot] | None:
        items, index = call.data[0].items, call.data[1].known
        if items is None or index is None or not 0 <= int(index) < len(items):
            return None
        item, alias = self._item(items[int(index)], call.node.outputs[0], call.kind)
        self._emit(call, [item.tensor], aliases=(alias,))
        return [item]

    def _from_tensor(self, call: Call) -> list[Slot] | None:
        whole = call.data[0].value
        if not whole.shape or whole.shape[0] > MOST_ITEMS:
            return None
        # tensor_list.h, TensorListFromTensor: every item is copied, to be aligned.
        value = Value(whole.dtype, whole.item_bytes, whole.shape[1:])
        items = tuple(
            Slot(self._tensor(value.bytes, call.kind), value) for _ in range(whole.shape[0])
        )
        tensors = tuple(item.tensor for item in items)
        slot = self._list(call, items, tensors)
        self._emit(call, [*tensors, slot.tensor])
        return [slot]

    def _like(self, call: Call) -> list[Slot] | None:
        """Zeros like a list, or the sum of lists: a new list with new items."""
        pattern = call.data[0].items
        if pattern is None:
            return None
        items = tuple(
            None if item is None else Slot(self._tensor(item.value.bytes, call.kind), item.value)
            for item in pattern
        )
        tensors = tuple(item.tensor for item in items if item is not None)
        slot = self._list(call, items, tensors)
        self._emit(call, [*tensors, slot.tensor])
        return [slot]

    def _item(self, found: Slot | None, value: Value, kind: Kind) -> tuple[Slot, int]:
        """The result of reading a place, and the tensor whose buffer it is.

        Where nothing was written, zeros are made on the spot, which are nobody's (-1).
        """
        if found is None:
            return Slot(self._tensor(value.bytes, kind), value), -1
        tensor = self._tensor(0, kind)
        return Slot(tensor, found.value, found.known, items=found.items), found.tensor
