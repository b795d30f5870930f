"""A `.tflite` file → LiteModel. Reads what memory depends on, and checks all of it.

What the file claims is not trusted: indices outside their lists, shapes of more bytes than any
machine has, subgraphs that call themselves. Each is refused with what is wrong. No TensorFlow, no
interpreter; nothing of the file is run.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snugly.errors import ProgramNotFoundError, UnreadableProgramError
from snugly.readers.tflite.flatbuffer import INT8, INT32, UINT8, UINT32, UINT64, Buffer, damaged
from snugly.readers.tflite.model import LiteModel, LiteOperator, LiteSubgraph, LiteTensor
from snugly.readers.tflite.schema import (
    ACCELERATOR_OPERATORS,
    CALLED_SUBGRAPHS,
    CUSTOM,
    IDENTIFIER,
    OPERATORS,
    OPTIONS,
    TYPES,
    UNKNOWN_TYPE,
)
from snugly.units import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.readers.tflite.flatbuffer import Table

MOST_DIMENSIONS: Final = 32  # LiteRT's kernels take 8 at most
MOST_TENSORS: Final = 200_000  # of all subgraphs; Python needs about 1 KiB for each
SMALLEST_FILE: Final = 8
OFFLINE_PLAN: Final = "OfflineMemoryAllocation"  # kOfflineMemAllocMetadata, TFLite Micro
OFFLINE_HEADER: Final = 3  # version, subgraphs, tensors; then an offset each
NO_SUBGRAPH: Final = -1

_CODES: Final = {"b": INT8, "i": INT32}
# The fields of Model and of SubGraph that lead to something else, and their numbers; schema.fbs.
_MODEL_VERSION, _MODEL_OFFSETS = 0, range(1, 8)
_SUBGRAPH_OFFSETS, _DEBUG_INDEX = range(5), 5


def read_tflite(source: str | Path | bytes | memoryview, name: str = "model.tflite") -> LiteModel:
    """Read a model from a path, or from the bytes of a file, which errors call by `name`."""
    if isinstance(source, bytes | memoryview):
        return _read(memoryview(source), name)
    path = Path(source)
    return _read(_mapped(path), path.name)


def _mapped(path: Path) -> memoryview:
    """The bytes of a file as a map, so that a large one is not loaded; gone with the last view."""
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise UnreadableProgramError(f"{path.name} is empty", code="SNG560")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (FileNotFoundError, NotADirectoryError):
        raise ProgramNotFoundError(f"there is no file {str(path)!r}") from None
    except OSError as error:
        reason = error.strerror or error
        raise UnreadableProgramError(f"cannot read {str(path)!r}: {reason}") from None


def _read(data: memoryview, name: str) -> LiteModel:
    if len(data) < SMALLEST_FILE or bytes(data[4:8]) != IDENTIFIER:
        raise UnreadableProgramError(
            f"{name} is not a .tflite file: it does not carry the identifier TFL3",
            code="SNG561",
            hint="give the file that the converter wrote; a SavedModel or .keras file needs no"
            " suffix .tflite",
        )
    root = Buffer(data).root()
    root.require(_MODEL_OFFSETS, _MODEL_VERSION)  # no runtime loads it otherwise
    buffers = _Buffers(root.tables(4), len(data))
    codes = [_operator_name(code) for code in root.tables(1)]
    subgraphs = root.tables(2)
    if not subgraphs:
        raise damaged("it has no subgraph")
    reading = _Reading(buffers, codes)
    read = [reading.subgraph(table) for table in subgraphs]
    for subgraph in read:
        _check_calls(subgraph, len(read))
    _check_recursion(read)
    metadata = {entry.text(0): entry.number(1, UINT32) for entry in root.tables(6)}
    names = {operator.name for subgraph in read for operator in subgraph.operators}
    return LiteModel(
        name=name,
        size=len(data),
        subgraphs=tuple(read),
        buffers=tuple(buffers.sizes),
        metadata=metadata,
        offline_offsets=_offline_offsets(metadata, buffers, read),
        accelerators=tuple(
            text for custom, text in ACCELERATOR_OPERATORS.items() if custom in names
        ),
        description=root.text(3),
    )


class _Buffers:
    """The constant data of a file: how large each is, and its bytes where somebody asks."""

    def __init__(self, tables: Sequence[Table], size: int) -> None:
        self._tables = tables
        self.sizes: list[int] = []
        for table in tables:
            length = table.length(0, 1)
            outside, offset = table.number(2, UINT64), table.number(1, UINT64)
            if outside and offset > 1:  # kept after the flatbuffer: files of more than 2 GiB
                if offset + outside > size:
                    raise damaged("it was cut short: its constants lie after its end")
                length = outside
            self.sizes.append(length)

    def size(self, index: int) -> int:
        if index >= len(self.sizes):
            raise damaged(f"it names buffer {index} of {len(self.sizes)}")
        return self.sizes[index]

    def data(self, index: int) -> memoryview | None:
        self.size(index)
        return self._tables[index].bytes(0)


class _Reading:
    """Reads subgraphs, counting tensors over all of them."""

    def __init__(self, buffers: _Buffers, codes: list[tuple[str, bool, int]]) -> None:
        self._buffers = buffers
        self._codes = codes
        self._tensors_left = MOST_TENSORS

    def subgraph(self, table: Table) -> LiteSubgraph:
        table.require(_SUBGRAPH_OFFSETS, _DEBUG_INDEX)
        rows = table.tables(0)
        self._tensors_left -= len(rows)
        if self._tensors_left < 0:
            raise damaged(f"it declares more than {MOST_TENSORS} tensors")
        tensors = tuple(self._tensor(row, index) for index, row in enumerate(rows))
        count = len(tensors)
        operators = tuple(self._operator(row, count) for row in table.tables(3))
        return LiteSubgraph(
            table.text(4),
            tensors,
            operators,
            _indices(table.numbers(1), count),
            _indices(table.numbers(2), count),
        )

    def _tensor(self, table: Table, index: int) -> LiteTensor:
        shape = table.numbers(0, most=MOST_DIMENSIONS)
        number = table.number(1, INT8)
        name = table.text(3) or f"tensor {index}"
        buffer = table.number(2, UINT32)
        quantization = table.table(4)
        tensor = LiteTensor(
            name,
            shape,
            TYPES[number] if 0 <= number < len(TYPES) else UNKNOWN_TYPE,
            buffer,
            self._buffers.size(buffer),
            bool(table.number(5, UINT8)),
            table.numbers(7, most=MOST_DIMENSIONS),
            quantization.length(2, 4) if quantization else 0,
            quantization.length(3, 8) if quantization else 0,
            quantization.number(6, INT32) if quantization else 0,
            table.has(6),
        )
        if min(shape, default=0) < 0:
            raise damaged(f"{name!r} has a negative dimension")
        if max(tensor.bytes, tensor.micro_bytes) > LARGEST:
            raise UnreadableProgramError(
                f"{name!r} is declared as {'×'.join(map(str, shape))}, more than 8 EiB",
                code="SNG562",
            )
        return tensor

    def _operator(self, table: Table, tensors: int) -> LiteOperator:
        index = table.number(0, UINT32)
        if index >= len(self._codes):
            raise damaged(f"an operator is of kind {index} of {len(self._codes)}")
        name, custom, version = self._codes[index]
        options = table.table(4) if table.number(3, UINT8) and not custom else None
        return LiteOperator(
            name,
            _indices(table.numbers(1), tensors),
            _indices(table.numbers(2), tensors),
            _indices(table.numbers(8), tensors),
            {
                option: options.number(field, _CODES[code], default) if options else default
                for option, field, code, default in OPTIONS.get(name, ())
            },
            options.text(1) if options and name == "VAR_HANDLE" else "",
            custom,
            version,
        )


def _operator_name(table: Table) -> tuple[str, bool, int]:
    """The name of an operator code, whether it is custom, and its version."""
    number = max(table.number(0, INT8), table.number(3, INT32))
    version = table.number(2, INT32, 1)
    if not 0 <= number < len(OPERATORS):
        return f"operator {number}", True, version
    name = OPERATORS[number]
    if name == CUSTOM:
        return table.text(1) or "an unnamed custom operator", True, version
    return name, False, version


def _indices(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Tensor indices; -1 stands for one that is left out."""
    if numbers and (min(numbers) < -1 or max(numbers) >= count):
        raise damaged(f"it names a tensor that is not one of its {count}")
    return numbers


def _check_calls(subgraph: LiteSubgraph, count: int) -> None:
    for operator in subgraph.operators:
        for option in CALLED_SUBGRAPHS.get(operator.name, ()):
            if not 0 <= operator.options[option] < count:
                raise damaged(f"{operator.name} calls a subgraph that is not one of its {count}")


def _check_recursion(subgraphs: Sequence[LiteSubgraph]) -> None:
    """No subgraph may call itself, directly or through others; the runtimes would not end."""
    calls = [
        {
            operator.options[option]
            for operator in subgraph.operators
            for option in CALLED_SUBGRAPHS.get(operator.name, ())
        }
        for subgraph in subgraphs
    ]
    waiting = dict(enumerate(calls))
    while waiting:
        ready = [index for index, called in waiting.items() if not called & waiting.keys()]
        if not ready:
            raise damaged("one of its subgraphs calls itself")
        for index in ready:
            del waiting[index]


def _offline_offsets(
    metadata: dict[str, int], buffers: _Buffers, subgraphs: Sequence[LiteSubgraph]
) -> tuple[int, ...] | None:
    """The offsets of an offline plan, where the file carries one."""
    if OFFLINE_PLAN not in metadata:
        return None
    data = buffers.data(metadata[OFFLINE_PLAN])
    numbers = memoryview(bytes(data)).cast("i").tolist() if data and len(data) % 4 == 0 else []
    tensors = sum(len(subgraph.tensors) for subgraph in subgraphs)
    if len(numbers) < OFFLINE_HEADER + tensors or numbers[OFFLINE_HEADER - 1] != tensors:
        raise UnreadableProgramError(
            f"the offline memory plan in the file is not one for its {tensors} tensors;"
            " TFLite Micro would refuse it",
            code="SNG563",
        )
    offsets = numbers[OFFLINE_HEADER : OFFLINE_HEADER + tensors]
    if min(offsets, default=0) < -1:
        raise UnreadableProgramError(
            "the offline memory plan in the file has a negative offset", code="SNG563"
        )
    return tuple(offsets)
