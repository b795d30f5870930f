"""Raising an exception in another thread, and calling a function in the main one.

Both happen between two steps of Python there; a native call that is under way ends first.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Final

from snugly.errors import MemoryLimitExceeded
from snugly.guarding.refusal import is_users

if TYPE_CHECKING:
    from collections.abc import Callable

_PENDING: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_waiting: Final[list[object]] = []


class Raised(MemoryLimitExceeded):
    """What arrives in the thread: Python makes it there, without arguments.

    Keras makes errors anew with a longer message, so one may be given.
    """

    text: str = "the memory limit was exceeded"
    advice: str | None = None

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).text, hint=type(self).advice)

    def __reduce__(self) -> tuple[object, ...]:
        return MemoryLimitExceeded, (self.message,)


def raise_in(thread: int, message: str, hint: str | None = None) -> bool:
    """Raise `MemoryLimitExceeded` in a thread; False where it has ended."""
    kind = type(
        "MemoryLimitExceeded",
        (Raised,),
        {"text": message, "advice": hint, "__module__": MemoryLimitExceeded.__module__},
    )
    return _set(thread, ctypes.py_object(kind)) == 1


def forget_raise(thread: int) -> None:
    """Take back an exception that has not arrived yet."""
    _set(thread, None)


def call_in_main(function: Callable[[], None]) -> None:
    """Call a function in the main thread as soon as Python runs there."""
    done: list[bool] = []

    def call(_: object) -> int:
        if not done:  # pending calls are made once; a second would be Python's error
            done.append(True)
            _waiting.remove(pointer)
            run_guarded(function)
        return 0

    pointer = _PENDING(call)
    _waiting.append(pointer)  # ctypes frees what nobody holds
    ctypes.pythonapi.Py_AddPendingCall(pointer, None)


def run_guarded(function: Callable[[], None]) -> None:
    """Call what a user gave; what it raises becomes a warning, for nobody there expects it."""
    try:
        function()
    except Exception as problem:  # noqa: BLE001 - the user's function may raise anything
        tell(f"on_pressure failed: {type(problem).__name__}: {problem}", None)


def tell(message: str, thread: int | None) -> None:
    """A warning at a thread's line of the user's, even where warnings are errors."""
    file, line = _line_of(thread if thread is not None else threading.get_ident())
    try:
        warnings.warn_explicit(message, UserWarning, file, line)
    except Warning:
        sys.stderr.write(f"warning: {message}\n")


def _line_of(thread: int) -> tuple[str, int]:
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the documented way to ask
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "snugly", 1


def is_main(thread: int) -> bool:
    """Whether a thread is the one in which Python began."""
    return thread == threading.main_thread().ident


def _set(thread: int, kind: ctypes.py_object[type] | None) -> int:
    return ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), kind)
