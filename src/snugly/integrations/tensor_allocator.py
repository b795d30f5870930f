"""TensorFlow's CPU allocator, found in this process: its limit, its wait, and what it has in hand.

It reads its limit (`TF_MKL_ALLOC_MAX_BYTES`) once, when it is made, and waits ten seconds before it
refuses. A guard needs a limit that moves, and tensors must be refused before the rest of TensorFlow
is: kernels take scratch memory without looking whether they got it. So the object is found (through
functions and a virtual table that TensorFlow exports), and told by its own figures whether it is
what it should be: the bins of 256, 512, … bytes behind its limit, the options behind those, and the
counts of bytes that TensorFlow itself reports. If one of them is not there, nothing is touched. Nor
is the size of the next region, where it is no power of two.
Layout: xla/tsl/framework/bfc_allocator.h, TensorFlow 2.21.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from snugly.recording.allocator import memory_info

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIBRARY: Final = "libtensorflow_framework.so.2"
_TABLE: Final = "_ZTVN3tsl12BFCAllocatorE"  # vtable for tsl::BFCAllocator
_DEFAULT: Final = "_ZN3tsl13cpu_allocatorEi"  # tsl::cpu_allocator(int)
_STATE: Final = "_ZN10tensorflow12ProcessState9singletonEv"
_WORD: Final = 8
_WORDS: Final = 260
_BINS, _BIN_WORDS, _FIRST_BIN = 21, 7, 256
_OPTIONS: Final = b"\x01\x01\x00"  # allow_growth, allow_retry_on_failure, garbage_collection
_POOL: Final = 10
"""Words from bytes_in_use to pool_bytes in tsl::AllocatorStats."""
_LIMIT: Final = 3
_REGION: Final = 2
"""Words from the options to curr_region_allocation_bytes_."""

_ATTEMPTS: Final = 5
_found: Final[list[TensorAllocator]] = []


class TensorAllocator:
    """The allocator's fields, once they are known to be what they should be."""

    def __init__(self, address: int, limit: int, in_use: int) -> None:
        words = ctypes.c_uint64 * 1
        self._limit = words.from_address(address + limit * _WORD)
        options = address + (limit + 1 + _BINS * _BIN_WORDS) * _WORD
        self._retries = ctypes.c_ubyte.from_address(options + 1)
        self._region = words.from_address(options + _REGION * _WORD)
        self._in_use = words.from_address(address + in_use * _WORD)
        self._pool = words.from_address(address + (in_use + _POOL) * _WORD)
        self._before = int(self._limit[0])

    @property
    def limit_address(self) -> int:
        """Where its limit lies."""
        return ctypes.addressof(self._limit)

    @property
    def idle(self) -> int:
        """What it has taken from the system and not handed out."""
        return max(int(self._pool[0]) - int(self._in_use[0]), 0)

    @property
    def pool(self) -> int:
        """What it has taken from the system."""
        return int(self._pool[0])

    @property
    def in_use(self) -> int:
        """What it has handed out."""
        return int(self._in_use[0])

    @property
    def more(self) -> int:
        """What it may still take from the system."""
        return max(int(self._limit[0]) - int(self._pool[0]), 0)

    def allow(self, pool: int) -> None:
        """Let it take so much from the system in all, and no more; what it has stays.

        Never less than it has: it takes the difference for a number without a sign, and would know
        no limit at all.
        """
        self._limit[0] = max(min(pool, self._before), self.pool)
        self._keep_region()

    def refuse_at_once(self) -> None:
        """Let it refuse without waiting for others to free."""
        self._retries.value = 0

    def restore(self) -> None:
        """Its own limit and its wait; not below what it has, as above."""
        self._limit[0] = max(self._before, self.pool)
        self._keep_region()
        self._retries.value = 1

    def _keep_region(self) -> None:
        """Let the next region be no larger than what is there already, as it would be without us.

        Each region is twice the one before, however little of it there was room for. Of many small
        ones the size would run over and be 0, which the allocator then doubles for ever.
        """
        size, natural = int(self._region[0]), 1 << self.pool.bit_length()
        if not size & (size - 1) and not 0 < size <= natural:  # a power of two, or run over
            self._region[0] = natural


def find_tensor_allocator() -> TensorAllocator | None:
    """The allocator of tensors on this CPU; None where it is another one, or not as it should be.

    TensorFlow must have been used; without oneDNN and without BFC there is none. It is looked for
    until it is found, and lives as long as the process.
    """
    if not _found and memory_info("CPU:0") is not None:
        _make_tensor()
        for _ in range(_ATTEMPTS):  # others may be allocating while its counts are compared
            found = _search()
            if found is not None:
                _found.append(found)
                break
    return _found[0] if _found else None


def _make_tensor() -> None:
    """It counts what it has taken once there was a tensor of 256 KiB."""
    tensorflow: Any = sys.modules.get("tensorflow")
    if tensorflow is not None:
        with tensorflow.device("CPU:0"):
            tensorflow.raw_ops.Empty(shape=[1 << 19], dtype=tensorflow.uint8, init=False)


def _search() -> TensorAllocator | None:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or sys.platform != "linux":
        return None
    try:
        library = ctypes.CDLL(str(Path(tensorflow.__file__ or "").parent / _LIBRARY))
        table = ctypes.addressof(ctypes.c_char.in_dll(library, _TABLE)) + 2 * _WORD
        with ProcessMemory() as memory:
            for address in _candidates(library, memory, table):
                found = _check(memory.words(address, _WORDS), memory, address)
                if found is not None:
                    return found
    except (OSError, AttributeError, ValueError):
        return None
    return None


class ProcessMemory:
    """Reads this process's memory without ever crashing: a bad address is an error."""

    def __enter__(self) -> Self:
        self._file = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def read(self, address: int, size: int) -> bytes:
        """What lies there; nothing where nothing does."""
        try:
            return os.pread(self._file, size, address)
        except (OSError, OverflowError):
            return b""

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """The same as numbers of eight bytes."""
        read = self.read(address, count * _WORD)
        return struct.unpack(f"{len(read) // _WORD}Q", read[: len(read) // _WORD * _WORD])


def _candidates(library: Any, memory: ProcessMemory, table: int) -> Iterator[int]:
    """Where an allocator of this kind may be: in the default one, or in the list of all."""
    for name, arguments in ((_STATE, ()), (_DEFAULT, (-1,))):
        ask = getattr(library, name, None)
        if ask is None:
            continue
        ask.restype = ctypes.c_void_p
        root = ask(*arguments)
        for word in memory.words(root or 0, 32):
            for address in (word, *memory.words(word, 2)):
                if memory.words(address, 1) == (table,):
                    yield address


def _check(words: tuple[int, ...], memory: ProcessMemory, address: int) -> TensorAllocator | None:
    if len(words) < _WORDS:
        return None
    limit = _find_limit(words)
    info = memory_info("CPU:0")
    if limit is None or info is None:
        return None
    options = limit + 1 + _BINS * _BIN_WORDS
    if memory.read(address + options * _WORD, len(_OPTIONS)) != _OPTIONS:
        return None
    for place in range(options, _WORDS - _POOL - 1):
        figures = words[place : place + _POOL + 2]
        is_counted = figures[0] == info.current and figures[0] <= figures[1]
        is_limited = figures[_LIMIT] == words[limit] and figures[_LIMIT + 1] & 0xFF == 1
        has_pool = figures[_POOL + 1] & 0xFF == 1 and figures[0] <= figures[_POOL] <= words[limit]
        if is_counted and is_limited and has_pool:
            return TensorAllocator(address, limit, place)
    return None


def _find_limit(words: tuple[int, ...]) -> int | None:
    """The word before the bins, each of which begins with its size."""
    for place in range(1, 16):
        bins = words[place + 1 : place + 1 + _BINS * _BIN_WORDS : _BIN_WORDS]
        if bins == tuple(_FIRST_BIN << number for number in range(_BINS)):
            return place
    return None
