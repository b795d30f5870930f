"""A library's own error of a refused request becomes `MemoryLimitExceeded` at the user's line."""

from __future__ import annotations

import re
from types import FrameType, TracebackType
from typing import Final

from snugly.errors import MemoryLimitExceeded, SnuglyError
from snugly.guarding.refusal import asked_for, is_users, says_refused, tensor_in
from snugly.units import Size

_TENSORFLOW: Final = "tensorflow."
_LIBRARY_SAYS: Final = re.compile(r"Unable to allocate|[Cc]annot allocate|bad_alloc|out of memory")
_LONGEST: Final = 16_384
_DEEPEST: Final = 100


def is_refusal(error: BaseException | None) -> bool:
    """Whether an error tells of memory of this process that was refused.

    Python's own `MemoryError` has no text, NumPy's says what it wanted. One with another text is
    somebody's own. TensorFlow's are told by their text: a py_function's come as UnknownError. What
    a card refuses is not ours.
    """
    if error is None or isinstance(error, SnuglyError):
        return False
    if isinstance(error, MemoryError):
        text = str(error)
        return not text or _LIBRARY_SAYS.search(text) is not None
    if not type(error).__module__.startswith(_TENSORFLOW):
        return isinstance(error, OSError) and error.errno == 12  # noqa: PLR2004 - ENOMEM
    return says_refused(f"{type(error).__name__}: {error}"[-_LONGEST:])


def converted(error: BaseException, limit: int, held: int) -> MemoryLimitExceeded:
    """The error that the user sees, with what was asked for where the library tells."""
    text = f"{type(error).__name__}: {error}"
    tensor, asked = tensor_in(text), asked_for(text)
    wanted = f"the tensor {tensor}" if tensor else "memory" if asked is None else f"{Size(asked)}"
    left = Size(max(limit - held, 0))
    return MemoryLimitExceeded(
        f"{wanted} was refused: the process holds {Size(held)} (measured) of the guard's limit of"
        f" {Size(limit)}, and {left} are left"
    )


def at_users_line(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback up to the user's innermost line; whole where no line is the user's."""
    steps: list[TracebackType] = []
    while traceback is not None:
        steps.append(traceback)
        traceback = traceback.tb_next
    whole = steps[0] if steps else None
    while steps and not is_users(steps[-1].tb_frame.f_code.co_filename):
        steps.pop()
    if not steps:
        return whole
    end: TracebackType | None = None
    for step in reversed(steps[-_DEEPEST:]):
        end = TracebackType(end, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return end


def let_go(error: BaseException | None, traceback: TracebackType | None) -> None:
    """Forget what functions of libraries held when memory was refused them.

    An error keeps the frames it came through, and a notebook keeps its last error: with them an
    input pipeline would live on and go on filling. What the user's own functions held stays.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for first in (traceback, error.__traceback__):
            step = first
            while step is not None:
                _clear(step.tb_frame)
                step = step.tb_next
        error, traceback = error.__cause__ or error.__context__, None


def _clear(frame: FrameType | None) -> None:
    """A frame and those that called it, up to one that still runs."""
    while frame is not None:
        if not is_users(frame.f_code.co_filename):
            try:
                frame.clear()
            except RuntimeError:
                return
        frame = frame.f_back
