"""Which line of the user's code asked TensorFlow for what, and when.

Operations that run eagerly carry no name beyond their type; the line that called them is the only
thing that tells them apart. Python calls TensorFlow through two functions for operations and one
for constants, and always looks them up in their module, so that is where we listen.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.readers.user_code import is_users

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from numpy.typing import NDArray

OPERATION, FUNCTION, CONSTANT = 0, 1, 2  # what was called
FORWARD, BACKWARD, UPDATE = 0, 1, 2  # in which phase of training
MOST_CALLS: Final = 1_000_000  # in one window: 40 MB
_COLUMNS = ("begin", "end", "place", "layer", "function", "what")

_BACKWARD_FILES = ("/tensorflow/python/eager/backprop.py",)
_UPDATE_FILES = ("/keras/src/optimizers/",)


@dataclass(slots=True)
class Places:
    """Lines of the user's code and names of layers, numbered."""

    names: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """The number of a name; the same name has the same number."""
        known = self._numbers.get(name)
        if known is None:
            known = self._numbers[name] = len(self.names)
            self.names.append(name)
        return known


class CallLog:
    """Notes each call into TensorFlow while `active`; otherwise it costs one comparison.

    `on_call` is asked before every call, active or not: between two calls of one thread nothing of
    the program runs, which is where a window can be changed without losing an event.
    """

    def __init__(self, on_call: Callable[[], None]) -> None:
        self.active = False
        self.places = Places()
        self._on_call = on_call
        self._columns = {name: array("q") for name in _COLUMNS}
        self._kinds: dict[CodeType, int] = {}
        self._lines: dict[tuple[CodeType, int], int] = {}
        self._functions: dict[str, int] = {}
        self._layers = threading.local()
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Begin to listen; TensorFlow must have been imported."""
        from tensorflow.python import pywrap_tfe
        from tensorflow.python.framework import constant_op

        self._replace(pywrap_tfe, "TFE_Py_FastPathExecute", OPERATION)
        self._replace(pywrap_tfe, "TFE_Py_Execute", FUNCTION)
        self._replace(constant_op, "convert_to_eager_tensor", CONSTANT)

    def remove(self) -> None:
        """Put TensorFlow back as it was."""
        while self._undo:
            self._undo.pop()()

    def entered(self, layer: str) -> None:
        """A layer begins to run eagerly in this thread."""
        stack = getattr(self._layers, "stack", None)
        if stack is None:
            stack = self._layers.stack = []
        stack.append(self.places.number(layer))

    def left(self) -> None:
        """The innermost layer of this thread is done."""
        self._layers.stack.pop()

    def take(self) -> dict[str, NDArray[np.int64]]:
        """The calls since the last time, as columns, in the order in which they ended."""
        taken = {name: np.array(column, np.int64) for name, column in self._columns.items()}
        for column in self._columns.values():
            del column[:]
        shortest = min(len(column) for column in taken.values())  # another thread may be at it
        return {name: column[:shortest] for name, column in taken.items()}

    def _replace(self, module: Any, name: str, what: int) -> None:
        original = getattr(module, name, None)
        if original is None:  # a version of TensorFlow that does it in another way
            return
        begin, end, place, layer, function, kind = (self._columns[name] for name in _COLUMNS)
        now, on_call, locate, layers = time.time_ns, self._on_call, self._locate, self._layers
        function_of, frame_at = self._function, sys._getframe  # noqa: SLF001 - inspect reads files

        def listening(*arguments: Any, **named: Any) -> Any:
            on_call()
            if not self.active or len(begin) >= MOST_CALLS:
                return original(*arguments, **named)
            started = now()
            try:
                return original(*arguments, **named)
            finally:
                where, phase = locate(frame_at(2))
                stack = getattr(layers, "stack", None)
                begin.append(started)
                end.append(now())
                place.append(where)
                layer.append(stack[-1] if stack else -1)
                function.append(function_of(arguments) if what == FUNCTION else -1)
                kind.append(what + 4 * phase)

        setattr(module, name, listening)
        self._undo.append(lambda: setattr(module, name, original))

    def _function(self, arguments: tuple[Any, ...]) -> int:
        """The graph behind `__inference_step_123`; -1 where an operation was called by its type."""
        name = str(arguments[2])  # context, device, name, …
        known = self._functions.get(name)
        if known is None:
            traced = name.startswith("__") and _FUNCTION_NAME.fullmatch(name)
            known = self.places.number(traced[1]) if traced else -1
            self._functions[name] = known
        return known

    def _locate(self, frame: FrameType | None) -> tuple[int, int]:
        """The innermost line of the user's, and the phase that the frames in between tell."""
        phase = FORWARD
        kinds = self._kinds
        while frame is not None:
            code = frame.f_code
            kind = kinds.get(code)
            if kind is None:
                kind = kinds[code] = _kind_of(code.co_filename)
            if kind == _USERS:
                key = (code, frame.f_lineno)
                known = self._lines.get(key)
                if known is None:
                    line = f"{Path(code.co_filename).name}:{frame.f_lineno}"
                    known = self._lines[key] = self.places.number(line)
                return known, phase
            phase = max(phase, kind)
            frame = frame.f_back
        return -1, phase


_USERS: Final = 3
# As TensorFlow names what it has traced: polymorphic_function/atomic_function.py, 2.16 to 2.21.
_FUNCTION_NAME: Final = re.compile(r"__(?:inference|forward|backward)_(.*)_\d+")


def _kind_of(filename: str) -> int:
    if is_users(filename):
        return _USERS
    normal = filename.replace("\\", "/")
    if any(part in normal for part in _BACKWARD_FILES):
        return BACKWARD
    return UPDATE if any(part in normal for part in _UPDATE_FILES) else FORWARD
