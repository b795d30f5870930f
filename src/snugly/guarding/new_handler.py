r"""Room for C++ at the edge: what `operator new` does when the guard's limit refuses it memory.

TensorFlow is built without exceptions: a `std::bad_alloc` passes through it with its locks held and
Python's lock not, and the process crashes. Tensors do not come from `operator new` but from
allocators that check; lists, maps and messages around them do. C++ lets a program install a
function that is called when `operator new` fails, and tries again (`std::set_new_handler`). Ours
raises the soft RLIMIT_DATA by one step, up to a cap, so that the next tensor is refused
instead, cleanly. It must not call Python, for the thread that needs it may hold any lock; so it is
these few instructions, for x86-64 on Linux. Elsewhere, and where a system forbids new executable
memory, there is none, and `install` says so::

    movabs rsi, room              ; struct {soft, hard, step, cap, calls, set_new_handler}
    lock inc qword [rsi+32]       ; calls
    mov    rax, [rsi+16]          ; step
    add    rax, [rsi]             ; + soft
    cmp    rax, [rsi+24]          ; beyond the cap?
    ja     give_up
    mov    [rsi], rax
    mov    edi, 2                 ; RLIMIT_DATA
    mov    eax, 160               ; setrlimit(RLIMIT_DATA, {soft, hard})
    syscall
    ret
  give_up:
    xor    edi, edi
    jmp    [rsi+40]               ; set_new_handler(nullptr): operator new throws, as ever
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from typing import Any, Final

_BEFORE: Final = bytes.fromhex("48be")  # movabs rsi, …
_AFTER: Final = bytes.fromhex(
    "f048ff4620 488b4610 480306 483b4618 7710 488906 bf02000000 b8a0000000 0f05 c3 31ff ff6628"
)
_STEP: Final = 1 << 20
_UNLIMITED: Final = 2**64 - 1
_SET: Final = "_ZSt15set_new_handlerPFvvE"
_LIBRARY: Final = "libstdc++.so.6"
_READ_EXECUTE: Final = mmap.PROT_READ | mmap.PROT_EXEC


class _Room(ctypes.Structure):
    """What the instructions read and write; the order is theirs."""

    _fields_ = [
        (name, ctypes.c_uint64) for name in ("soft", "hard", "step", "cap", "calls", "setter")
    ]


class NewHandler:
    """The handler of this process; made once, for its instructions stay where they are."""

    def __init__(self) -> None:
        self._setter: Any = None
        self._code: mmap.mmap | None = None
        self._address = 0
        self._room = _Room()
        try:
            self._make()
        except (OSError, AttributeError, ValueError):
            self._setter = None

    @property
    def is_there(self) -> bool:
        """Whether this system can have one."""
        return self._setter is not None

    @property
    def calls(self) -> int:
        """How often `operator new` was helped since it was first installed."""
        return int(self._room.calls)

    def install(self) -> bool:
        """Help `operator new` as `follow` says; False where that is not possible.

        The user's own handler, if there is one, is left alone.
        """
        if not self.is_there:
            return False
        earlier = self._setter(self._address)
        if earlier not in {None, self._address}:
            self._setter(earlier)
            return False
        return True

    def follow(self, soft: int, hard: int, cap: int) -> None:
        """Say what the limits are now, and how far the soft one may be raised."""
        self._room.hard = _UNLIMITED if hard < 0 else hard
        self._room.cap = cap if hard < 0 else min(cap, hard)
        self._room.soft = soft

    def remove(self) -> None:
        """Let `operator new` fail as ever; a handler that somebody installed meanwhile stays."""
        if self.is_there:
            earlier = self._setter(None)
            if earlier not in {None, self._address}:
                self._setter(earlier)

    def _make(self) -> None:
        if sys.platform != "linux" or platform.machine() != "x86_64":
            return
        setter = getattr(ctypes.CDLL(_LIBRARY), _SET)
        setter.argtypes, setter.restype = [ctypes.c_void_p], ctypes.c_void_p
        self._room.step = _STEP
        self._room.setter = ctypes.cast(setter, ctypes.c_void_p).value or 0
        code = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        code.write(_BEFORE + ctypes.addressof(self._room).to_bytes(8, "little") + _AFTER)
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        library = ctypes.CDLL(None, use_errno=True)
        library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        if library.mprotect(address, mmap.PAGESIZE, _READ_EXECUTE) != 0:
            return
        self._code, self._address, self._setter = code, address, setter
