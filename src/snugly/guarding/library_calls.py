"""Where libraries of this process keep the addresses of functions that they call in others.

A library calls a function of another one through a slot that the dynamic linker fills (ELF,
`R_X86_64_JUMP_SLOT`). The slots are found in the tables that lie in memory beside the library
itself, so nothing is read from files. Those that a system has made read-only are left out.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_DYNAMIC: Final = 2  # PT_DYNAMIC
_STRINGS, _SYMBOLS, _SLOTS_SIZE, _SLOTS = 5, 6, 2, 23  # DT_STRTAB, _SYMTAB, _PLTRELSZ, _JMPREL
_JUMP_SLOT: Final = 7  # R_X86_64_JUMP_SLOT
_MAGIC: Final = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_RELOCATION: Final = [("slot", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")]
_SYMBOL: Final = [("name", "<u4"), ("kind", "<u4"), ("value", "<u8"), ("size", "<u8")]


def mapped_libraries(folder: Path, maps: str | None = None) -> dict[int, str]:
    """Libraries below a folder that this process has loaded, by where each begins."""
    found: dict[str, int] = {}
    inside = f"{folder.resolve()}/"
    for start, _, _, path in _mappings(maps):
        if path.startswith(inside) and ".so" in path:
            found.setdefault(path, start)
    return {start: path for path, start in found.items()}


def find_slots(begin: int, names: Iterable[str], maps: str | None = None) -> dict[str, list[int]]:
    """The slots through which the library that begins there calls these functions."""
    import numpy

    tables = _dynamic(begin)
    if not {_STRINGS, _SYMBOLS, _SLOTS_SIZE, _SLOTS} <= tables.keys():
        return {}
    where = {key: value if value >= begin else begin + value for key, value in tables.items()}
    relocations = _view(where[_SLOTS], tables[_SLOTS_SIZE]).view(_RELOCATION)
    relocations = relocations[relocations["kind"] == _JUMP_SLOT]
    if not len(relocations):
        return {}
    count = int(relocations["symbol"].max()) + 1
    symbols = _view(where[_SYMBOLS], count * 24).view(_SYMBOL)
    offsets = symbols["name"][relocations["symbol"]].astype("int64")
    texts = _view(where[_STRINGS], int(offsets.max()) + 1)
    writable = [(start, end) for start, end, rights, _ in _mappings(maps) if rights[1] == "w"]
    first = texts[offsets]
    found: dict[str, list[int]] = {}
    for name in names:
        left = numpy.flatnonzero(first == ord(name[0]))
        for place, letter in enumerate([*name.encode()[1:], 0], start=1):
            at = offsets[left] + place
            inside = at < len(texts)  # the last name's end is not looked for
            left = left[inside][texts[at[inside]] == letter]
        slots = [begin + int(relocations["slot"][one]) for one in left]
        slots = [slot for slot in slots if any(start <= slot < end for start, end in writable)]
        if slots:
            found[name] = slots
    return found


class Diversion:
    """Calls of libraries that go elsewhere for a while."""

    def __init__(self, slots: Mapping[int, int]) -> None:
        """By slot: where its calls are to go."""
        self._slots = dict(slots)
        self._before: dict[int, int] = {}

    def begin(self) -> None:
        """Let them go there."""
        for slot, target in self._slots.items():
            word = ctypes.c_uint64.from_address(slot)
            if slot not in self._before:
                self._before[slot] = word.value
                word.value = target

    def end(self) -> None:
        """Let them go where they went; what somebody else diverted meanwhile stays."""
        for slot, before in self._before.items():
            word = ctypes.c_uint64.from_address(slot)
            if word.value == self._slots[slot]:
                word.value = before
        self._before.clear()


def _dynamic(begin: int) -> dict[int, int]:
    """The entries of a library's dynamic section that are numbers or addresses."""
    if ctypes.string_at(begin, len(_MAGIC)) != _MAGIC:
        return {}
    headers = begin + ctypes.c_uint64.from_address(begin + 0x20).value
    size = ctypes.c_uint16.from_address(begin + 0x36).value
    for number in range(ctypes.c_uint16.from_address(begin + 0x38).value):
        header = headers + number * size
        if ctypes.c_uint32.from_address(header).value == _DYNAMIC:
            place = begin + ctypes.c_uint64.from_address(header + 16).value
            break
    else:
        return {}
    entries: dict[int, int] = {}
    while tag := ctypes.c_uint64.from_address(place).value:
        entries.setdefault(tag, ctypes.c_uint64.from_address(place + 8).value)
        place += 16
    return entries


def _view(address: int, size: int) -> Any:
    """This process's memory as an array, without a copy."""
    import numpy

    return numpy.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(address))


def _mappings(maps: str | None) -> Sequence[tuple[int, int, str, str]]:
    text = Path("/proc/self/maps").read_text(encoding="utf-8") if maps is None else maps
    found: list[tuple[int, int, str, str]] = []
    for line in text.splitlines():
        words = line.split(maxsplit=5)
        start, _, end = words[0].partition("-")
        path = words[5] if len(words) > 5 else ""  # noqa: PLR2004 - address … inode path
        found.append((int(start, 16), int(end, 16), words[1], path))
    return found
