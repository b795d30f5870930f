"""Whether a guarded block is still under way in its thread.

An exception that is sent to a thread may strike where Python is about to call the block's end, and
then nobody is told that it ended. So the watcher looks itself: whether the function that has the
block still runs, and whether it is between the block's first and last instruction.
"""

from __future__ import annotations

import dis
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

_WITH: Final = "BEFORE_WITH"
_STEP: Final = 2  # bytes of an instruction


def runs(thread: int, block: FrameType | None, entered_at: int) -> bool:
    """Whether the block that was entered at that instruction of a frame is still under way."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - the documented way to ask
    while frame is not None:
        if frame is block:
            return is_inside(frame, entered_at)
        frame = frame.f_back
    return False


def is_inside(frame: FrameType, entered_at: int) -> bool:
    """Whether a frame is inside its `with` block; True where that cannot be told.

    Python lists which instructions a block covers, because its end is called for their exceptions
    (Objects/exception_handling_notes.txt, CPython 3.11 to 3.13).
    """
    code = frame.f_code
    parse = getattr(dis, "_parse_exception_table", None)
    if parse is None or dis.opname[code.co_code[entered_at]] != _WITH:
        return True
    table = parse(code)
    first = entered_at + _STEP
    handlers = {entry.target for entry in table if entry.start <= first < entry.end}
    if not handlers:
        return True
    return any(
        entry.start <= frame.f_lasti < entry.end for entry in table if entry.target in handlers
    )
