"""Rewriting: other operators and tensors in the first subgraph of a `.tflite` file.

The file stays what it was in everything else: weights, quantisation, other subgraphs, signatures
and metadata are the very bytes of the old one. Only an offline memory plan is dropped, because it
was one for the old tensors. Tensors that nothing uses any more give their place in the list to new
ones, since TFLite Micro gives memory even to those.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.errors import InputError
from snugly.lite.rewriting_layout import (
    Fields,
    Number,
    Old,
    Vector,
    data,
    integers,
    lay_out,
    text,
)
from snugly.lite.rewriting_tables import LARGEST_FILE, copied
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.constants import Constants
from snugly.readers.tflite.flatbuffer import INT32, UINT64, Buffer, Table
from snugly.readers.tflite.read import OFFLINE_PLAN
from snugly.readers.tflite.schema import OPERATORS, TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.lite.rewriting_layout import Target

OPTION_TABLES: Final = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
}
"""Operators whose padding can be rewritten, and the table that holds it."""
# BuiltinOptions: the numbers of the tables that new operators carry.
CONCATENATION_OPTIONS: Final = 10
LARGEST_CODE_OF_OLD: Final = 127  # PLACEHOLDER_FOR_GREATER_OP_CODES


@dataclass(slots=True)
class NewTensor:
    """A tensor that takes everything but its shape from an old one, or is a constant."""

    shape: tuple[int, ...]
    like: int | None  # the tensor whose type, quantisation and name it has
    name: str
    type: int = 0
    content: bytes | None = None


@dataclass(slots=True)
class NewOperator:
    """An operator of the rewritten file: one of the old file, changed or not, or a new one."""

    inputs: list[int]
    outputs: list[int]
    old: int | None = None  # the operator of the old file that it repeats
    padding: int | None = None  # instead of the old one's
    name: str = ""  # of a new operator
    version: int = 1
    options: tuple[int, Fields] | None = None  # of a new operator: kind and table
    changed: bool = True


class Rewriting:
    """The new operators of the first subgraph, in order, and their new tensors."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.operators: list[NewOperator] = []
        self.model = read_tflite(source)
        self._buffer = Buffer(source)
        self._root = self._buffer.root()
        self._subgraphs = self._root.tables(2)
        self._tensors = self._subgraphs[0].tables(0)
        self._operators = self._subgraphs[0].tables(3)
        self._buffers = self._root.tables(4)
        self._values = Constants(source)
        self._new: list[NewTensor] = []
        self._constants: dict[tuple[object, ...], int] = {}
        self._shapes: dict[int, tuple[int, ...]] = {}
        for table in self._buffers:
            if table.number(1, UINT64) > 1:
                raise InputError(
                    "the model keeps its constants after the flatbuffer (files of more than"
                    " 2 GiB do), and cannot be rewritten",
                    code="SNG575",
                )

    # --- what the old file says

    def constant(self, tensor: int) -> memoryview | None:
        """The content of a constant as it stands in the file, or None where it is none."""
        return None if tensor < 0 else self._values.content(self.model.main.tensors[tensor])

    def constant_integers(self, tensor: int) -> tuple[int, ...] | None:
        """The value of a small constant of int32 or int64, or None where it is none."""
        return None if tensor < 0 else self._values.integers(self.model.main.tensors[tensor])

    def quantization(self, tensor: int) -> tuple[bytes, bytes]:
        """Scales and zero points as they stand in the file."""
        table = self._tensors[tensor].table(4)
        if table is None:
            return b"", b""
        scales = struct.pack(f"<{table.length(2, 4)}f", *table.numbers(2, "f"))
        points = struct.pack(f"<{table.length(3, 8)}q", *table.numbers(3, "q"))
        return scales, points

    def option(self, operator: int, number: int, form: struct.Struct, default: int = 0) -> int:
        """An option of an operator, by its field number."""
        table = self._operators[operator].table(4)
        return default if table is None else table.number(number, form, default)

    def option_integers(self, operator: int, number: int) -> tuple[int, ...]:
        """An option that is a list of int32."""
        table = self._operators[operator].table(4)
        return () if table is None else table.numbers(number, most=64)

    def type_of(self, tensor: int) -> str:
        """The type of a tensor, old or new."""
        known = len(self._tensors)
        if tensor >= known:
            like = self._new[tensor - known].like
            return (
                TYPES[self._new[tensor - known].type].name if like is None else self.type_of(like)
            )
        return self.model.main.tensors[tensor].type.name

    # --- what the new file gets

    def tensor(self, like: int, shape: Sequence[int], name: str) -> int:
        """A new tensor of the type and quantisation of an old one."""
        self._new.append(NewTensor(tuple(shape), like, name))
        return len(self._tensors) + len(self._new) - 1

    def integers(self, values: Sequence[int], shape: Sequence[int] | None = None) -> int:
        """A constant of int32; equal ones are the same tensor."""
        key = (tuple(values), tuple(shape or (len(values),)))
        if key not in self._constants:
            content = struct.pack(f"<{len(values)}i", *values)
            number = next(i for i, kind in enumerate(TYPES) if kind.name == "INT32")
            self._new.append(NewTensor(key[1], None, "constant", number, content))
            self._constants[key] = len(self._tensors) + len(self._new) - 1
        return self._constants[key]

    def scalar(self, like: int, content: bytes) -> int:
        """A constant of one element, of the type and quantisation of an old tensor."""
        key = (like, content)
        if key not in self._constants:
            self._new.append(NewTensor((1,), like, "constant", content=content))
            self._constants[key] = len(self._tensors) + len(self._new) - 1
        return self._constants[key]

    def reshape(self, tensor: int, shape: Sequence[int]) -> None:
        """Declare another shape for a tensor; dimensions that the file leaves open stay open."""
        self._shapes[tensor] = tuple(shape)

    def keep(self, operator: int) -> None:
        """Repeat an operator of the old file as it is."""
        old = self.model.main.operators[operator]
        self.operators.append(NewOperator([*old.inputs], [*old.outputs], operator, changed=False))

    def finish(self) -> bytes:
        """The bytes of the rewritten file."""
        places = self._places()
        buffers: list[Target] = [Old(table.start) for table in self._buffers]
        tensors: list[Target] = [Old(table.start) for table in self._tensors]
        tensors += [Old(0)] * (max(places.values(), default=-1) + 1 - len(tensors))
        for index, shape in self._shapes.items():
            tensors[index] = self._reshaped(index, shape)
        for number, new in enumerate(self._new):
            tensors[places[len(self._tensors) + number]] = self._tensor(new, buffers)
        codes: list[Target] = [Old(table.start) for table in self._root.tables(1)]
        operators = [self._operator(one, places, codes) for one in self.operators]
        subgraph = copied(
            self._buffer,
            self._subgraphs[0],
            "SubGraph",
            {0: Vector(tensors), 3: Vector(operators)},
        )
        rest: list[Target] = [Old(table.start) for table in self._subgraphs[1:]]
        changes: dict[int, Number | Target | None] = {
            1: Vector(codes),
            2: Vector([subgraph, *rest]),
            4: Vector(buffers),
        }
        if OFFLINE_PLAN in self.model.metadata:
            kept = [entry for entry in self._root.tables(6) if entry.text(0) != OFFLINE_PLAN]
            changes[6] = Vector([Old(entry.start) for entry in kept])
        result = lay_out(copied(self._buffer, self._root, "Model", changes), self.source)
        if len(result) > LARGEST_FILE:
            raise InputError("the rewritten model would have more than 2 GiB", code="SNG575")
        return result

    def _places(self) -> dict[int, int]:
        """Of each new tensor, its index: the free places of old ones first."""
        main = self.model.main
        used = {*main.inputs, *main.outputs}
        for operator in self.operators:
            used.update(operator.inputs, operator.outputs)
            if operator.old is not None:
                used.update(main.operators[operator.old].intermediates)
        count = len(self._tensors)
        free = [
            index
            for index in range(count)
            if index not in used and not main.tensors[index].is_variable
        ]
        places: dict[int, int] = {}
        following = count
        for number in range(len(self._new)):
            if free:
                places[count + number] = free.pop(0)
            else:
                places[count + number] = following
                following += 1
        # What stays free must not be given memory: it becomes a constant of one number.
        for index in free:
            if not main.tensors[index].is_constant:
                self._new.append(NewTensor((1,), None, "unused", 2, bytes(4)))
                places[count + len(self._new) - 1] = index
        return places

    def _tensor(self, new: NewTensor, buffers: list[Target]) -> Fields:
        buffer = 0
        if new.content is not None:
            buffers.append(Fields({0: data(new.content)}))
            buffer = len(buffers) - 1
        changes: dict[int, Number | Target | None] = {
            0: integers(new.shape),
            2: Number("I", buffer),
            3: text(new.name),
            7: None,  # the open dimensions of the old tensor
            8: Number("B", 1),
        }
        if new.like is None:
            made = {number: entry for number, entry in changes.items() if entry is not None}
            return Fields({**made, 1: Number("b", new.type)})
        signature = self.model.main.tensors[new.like].signature
        if new.content is None and signature and signature[0] < 0:
            changes[7] = integers((-1, *new.shape[1:]))  # the batch stays open
        return copied(self._buffer, self._tensors[new.like], "Tensor", changes)

    def _reshaped(self, index: int, shape: tuple[int, ...]) -> Fields:
        changes: dict[int, Number | Target | None] = {0: integers(shape)}
        signature = self.model.main.tensors[index].signature
        if signature:
            known = [-1 if old < 0 else new for old, new in zip(signature, shape, strict=False)]
            changes[7] = integers(known) if len(signature) == len(shape) else None
        return copied(self._buffer, self._tensors[index], "Tensor", changes)

    def _operator(self, new: NewOperator, places: dict[int, int], codes: list[Target]) -> Target:
        ends: dict[int, Number | Target | None] = {
            1: integers([places.get(index, index) for index in new.inputs]),
            2: integers([places.get(index, index) for index in new.outputs]),
        }
        if new.old is None:
            ends[0] = Number("I", self._code(new.name, new.version, codes))
            if new.options is not None:
                ends[3], ends[4] = Number("B", new.options[0]), new.options[1]
            return Fields({number: entry for number, entry in ends.items() if entry is not None})
        table = self._operators[new.old]
        if not new.changed:
            return Old(table.start)
        options = table.table(4)
        if new.padding is not None and options is not None:
            name = OPTION_TABLES[self.model.main.operators[new.old].name]
            ends[4] = copied(self._buffer, options, name, {0: Number("b", new.padding)})
        return copied(self._buffer, table, "Operator", ends)

    def _code(self, name: str, version: int, codes: list[Target]) -> int:
        """The number of an operator code; made where there is none of this version."""
        number = OPERATORS.index(name)
        for index, code in enumerate(codes):
            if isinstance(code, Old):
                table = Table(self._buffer, code.position)
                known = max(table.number(0, struct.Struct("<b")), table.number(3, INT32))
                if known == number and table.number(2, INT32, 1) == version:
                    return index
            elif isinstance(code, Fields) and (code.fields[3], code.fields[2]) == (
                Number("i", number),
                Number("i", version),
            ):
                return index
        codes.append(
            Fields(
                {
                    0: Number("b", min(number, LARGEST_CODE_OF_OLD)),
                    2: Number("i", version),
                    3: Number("i", number),
                }
            )
        )
        return len(codes) - 1
