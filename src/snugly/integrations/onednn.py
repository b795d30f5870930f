"""Letting a TensorFlow that runs already take the kernels that raise where memory is refused.

oneDNN's convolutions, poolings and fused products crash the process when their output finds no
room (TensorFlow 2.21); the kernels beside them raise an error. `TF_ENABLE_ONEDNN_OPTS=0` chooses
those, but TensorFlow reads it once, when it is imported. What it read is one byte that
`tensorflow::IsMklEnabled()` returns, and it asks for it whenever a graph is prepared to run. So the
byte is found behind that function and set; and only where the function's answer is seen to follow.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from pathlib import Path
from typing import Any, Final

_LIBRARY: Final = "libtensorflow_framework.so.2"
_ASK: Final = "_ZN10tensorflow12IsMklEnabledEv"
_LOAD_BYTE: Final = bytes.fromhex("0fb605")  # movzx eax, byte [rip + …]
_LONGEST: Final = 96
"""Bytes of the function's code that are searched; it has 80 in TensorFlow 2.21."""
_DISPLACEMENT: Final = 4


class Switch:
    """oneDNN of this process, on and off."""

    def __init__(self, byte: ctypes.c_ubyte) -> None:
        self._byte = byte

    def off(self) -> None:
        """What is prepared from now on takes TensorFlow's other kernels."""
        self._byte.value = 0

    def on(self) -> None:
        """What is prepared from now on takes oneDNN's."""
        self._byte.value = 1


def find_switch() -> Switch | None:
    """The switch, where oneDNN is on and can be switched; None where it is off or cannot be.

    Only on Linux for x86-64, where oneDNN is on by default.
    """
    ask = _question()
    if ask is None or not ask():
        return None
    address = ctypes.cast(ask, ctypes.c_void_p).value or 0
    code = ctypes.string_at(address, _LONGEST)
    for place in _byte_places(code):
        byte = ctypes.c_ubyte.from_address(address + place)
        if byte.value != 1:
            continue
        byte.value = 0
        follows = not ask()
        byte.value = 1
        if follows and ask():
            return Switch(byte)
    return None


def is_on() -> bool | None:
    """Whether TensorFlow uses oneDNN; None where it does not tell."""
    ask = _question()
    return None if ask is None else bool(ask())


def _question() -> Any:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    path = Path(tensorflow.__file__ or "").parent / _LIBRARY
    try:
        ask = getattr(ctypes.CDLL(str(path)), _ASK)
    except (OSError, AttributeError):
        return None
    ask.restype = ctypes.c_bool
    return ask


def _byte_places(code: bytes) -> list[int]:
    """Where the bytes lie that the code loads, from its beginning; the last is what it returns."""
    places: list[int] = []
    found = code.find(_LOAD_BYTE)
    while 0 <= found < len(code) - len(_LOAD_BYTE) - _DISPLACEMENT:
        end = found + len(_LOAD_BYTE) + _DISPLACEMENT
        displacement = code[end - _DISPLACEMENT : end]
        places.append(end + int.from_bytes(displacement, "little", signed=True))
        found = code.find(_LOAD_BYTE, end)
    return places[::-1]
