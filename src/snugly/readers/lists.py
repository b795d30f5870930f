"""TensorLists, which carry values across the turns of a loop: who holds what, for how long.

A list is a handful of bytes that keeps its items alive. A longer list holds the shorter one it was made from, so
pushing and popping cost the same however long it is.
"""

from __future__ import annotations

from collections.abc import Callable

from snugly.graph.model import Kind, Operation
from snugly.readers.node import Value
from snugly.readers.prepare import PreparedNode
from snugly.readers.slots import Expansion, Slot

# A list itself is one Variant, sizeof(Variant), tensorflow/core/framework/variant.h
VARIANT = 64


class Lists:
    """The list operators of one walk."""

    def __init__(self, expansion: Expansion) -> None:
        self.expansion = expansion
        self.visitors: dict[str, Callable[[PreparedNode, list[Slot], tuple[int, ...], Kind], list[Slot] | None]] = {
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

    def _emit(
        self,
        node: PreparedNode,
        inputs: list[Slot],
        outputs: list[int],
        after: tuple[int, ...],
        *,
        aliases: tuple[int, ...] = (),
        expensive: bool = True,
    ) -> int:
        return self.expansion.emit(
            Operation(
                node.name,
                node.type,
                tuple(slot.tensor for slot in inputs),
                tuple(outputs),
                after,
                aliases=aliases,
                expensive=expensive,
                seconds=2e-6,
            )
        )

    def _list(self, node: PreparedNode, items: tuple[Slot | None, ...], holds: tuple[int, ...]) -> Slot:
        return Slot(self.expansion.tensor(VARIANT, Kind.ACTIVATION, holds), node.outputs[0], items=items)

    def _empty(self, node: PreparedNode, inputs: list[Slot], after: tuple[int, ...], kind: Kind) -> list[Slot]:
        del kind
        slot = self._list(node, (), ())
        self._emit(node, inputs, [slot.tensor], after)
        return [slot]

    def _reserve(self, node: PreparedNode, inputs: list[Slot], after: tuple[int, ...], kind: Kind) -> list[Slot] | None:
        if inputs[1].known is None:
            return None
        del kind
        slot = self._list(node, (None,) * int(inputs[1].known), ())
        self._emit(node, inputs, [slot.tensor], after)
        return [slot]

    def _push(self, node: PreparedNode, inputs: list[Slot], after: tuple[int, ...], kind: Kind) -> list[Slot] | None:
        shorter, item = inputs
        if shorter.items is None:
            return None
        del kind
        slot = self._list(node, (*shorter.items, item), (shorter.tensor, item.tensor))
        self._emit(node, inputs, [slot.tensor], after)
        return [slot]

    def _pop(self, node: PreparedNode, inputs: list[Slot], after: tuple[int, ...], kind: Kind) -> list[Slot] | None:
        longer = inputs[0]
        if not longer.items:
            return None
        holds = self.expansion.graph.tensors[longer.tensor].holds
        shorter = self._list(node, longer.items[:-1], holds[:1] if len(holds) == 2 else (longer.tensor,))
        item, made = self._item(longer.items[-1], node.outputs[1], kind)
        alias = -1 if made else longer.items[-1].tensor  # type: ignore[union-attr]
        self._emit(node, inputs, [shorter.tensor, item.tensor], after, aliases=(-1, alias))
        return [shorter, item]

    def _set(self, node: PreparedNode, inputs: list[Slot], after: tuple[int, ...], kind: Kind) -> list[Slot] | None:
        before, index, item = inputs[:3]
        if before.items is None or index.known is None:
            return None
        del kind
        place = int(index.known)
        items = list(before.items) + [None] * (place + 1 - len(before.items))
        replaced = items[place] is not None
        items[place] = item
        others = tuple(slot.tensor for slot in items if slot is not None)
        slot = self._list(node, tuple(items), others if replaced else (before.tensor, item.tensor))
        self._emit(node, inputs, [slot.tensor], after)
        return [slot]

    def _get(self, node: PreparedNode, inputs: list[Slot], after: tuple[int, ...], kind: Kind) -> list[Slot] | None:
        items, index = inputs[0].items, inputs[1].known
        if items is None or index is None or not 0 <= int(index) < len(items):
            return None
        found = items[int(index)]
        item, made = self._item(found, node.outputs[0], kind)
        alias = -1 if made else found.tensor  # type: ignore[union-attr]
        self._emit(node, inputs, [item.tensor], after, aliases=(alias,))
        return [item]

    def _from_tensor(
        self, node: PreparedNode, inputs: list[Slot], after: tuple[int, ...], kind: Kind
    ) -> list[Slot] | None:
        whole = inputs[0].value
        if not whole.shape:
            return None
        # tensor_list.h, TensorListFromTensor: every item is copied, to be aligned.
        value = Value(whole.dtype, whole.item_bytes, whole.shape[1:])
        items = tuple(Slot(self.expansion.tensor(value.bytes, kind), value) for _ in range(whole.shape[0]))
        tensors = tuple(item.tensor for item in items)
        slot = self._list(node, items, tensors)
        self._emit(node, inputs, [*tensors, slot.tensor], after)
        return [slot]

    def _like(self, node: PreparedNode, inputs: list[Slot], after: tuple[int, ...], kind: Kind) -> list[Slot] | None:
        """Zeros like a list, or the sum of lists: a new list with new items."""
        pattern = inputs[0].items
        if pattern is None:
            return None
        items = tuple(
            None if item is None else Slot(self.expansion.tensor(item.value.bytes, kind), item.value) for item in pattern
        )
        tensors = tuple(item.tensor for item in items if item is not None)
        slot = self._list(node, items, tensors)
        self._emit(node, inputs, [*tensors, slot.tensor], after)
        return [slot]

    def _item(self, found: Slot | None, value: Value, kind: Kind) -> tuple[Slot, bool]:
        """The result of reading a place: the item's own buffer, or zeros made on the spot where nothing was written."""
        if found is None:
            return Slot(self.expansion.tensor(value.bytes, kind), value), True
        return Slot(self.expansion.tensor(0, kind), found.value, found.known, items=found.items), False
