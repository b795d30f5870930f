"""Refusing inside TensorFlow: before an operation begins, and in words when it was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from snugly.errors import MemoryLimitExceeded
from snugly.guarding.conversion import converted, is_refusal
from snugly.guarding.enclosure import ENCLOSURE
from snugly.guarding.policy import REFUSE_INSIDE
from snugly.guarding.refusal import says_refused
from snugly.integrations.function_uses import ALWAYS_LEFT
from snugly.integrations.operation_needs import TEXT_TIMES, bytes_of
from snugly.recording.allocator import memory_info
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALL: Final = 1 << 20
THREAD_ROOM: Final = 16 << 20
"""Two stacks, beside those that are in hand (`keep_stacks`)."""
_CPU: Final = "CPU:0"
_LAST: Final = 16_384


def with_scratch(original: Callable[..., Any], words: tuple[Any, ...]) -> Any:
    """Run an operation whose kernel crashes where scratch memory is refused it."""
    ENCLOSURE.lift()
    try:
        return original(*words)
    finally:
        ENCLOSURE.lower()


def raise_refused(problem: BaseException, *, exhausted: bool = False) -> None:
    """Raise what the user understands, if memory was refused; return if not.

    The runtime's own exception has a code and a text; its class is made of them later.
    """
    text = f"ResourceExhaustedError: {problem}"[-_LAST:]
    refused = says_refused(text) if exhausted else is_refusal(problem)
    if refused and ENCLOSURE.active:
        raise converted(problem, ENCLOSURE.limit, ENCLOSURE.look().held) from problem


def raise_interrupted(problem: Exception) -> None:
    """Raise what the user understands, if the watcher stopped a graph; return if not."""
    if type(problem).__name__ != "CancelledError" or not ENCLOSURE.active:
        return
    held, limit = ENCLOSURE.look().held, ENCLOSURE.limit
    raise MemoryLimitExceeded(
        f"a computation of TensorFlow was stopped: the process held more than the guard's limit of"
        f" {Size(limit)}; it holds {Size(held)} (measured) now"
    ) from problem


def refuse(name: str, need: int | None, *, recyclable: bool = True) -> None:
    """Refuse what cannot fit, before TensorFlow waits ten seconds for it, or crashes."""
    if need is None or need < _SMALL:
        return
    room = ENCLOSURE.room() + (recyclable_bytes() + REFUSE_INSIDE if recyclable else 0)
    if need > room:
        refuse_now(f"{name} would take {_size(need)} (predicted)")


def refuse_text(name: str, words: tuple[Any, ...]) -> None:
    """What text needs is not known before: eight times its pointers are assumed, or 64 MiB."""
    need = TEXT_TIMES * sum(bytes_of(word) for word in words if hasattr(word, "shape"))
    need = max(need, ALWAYS_LEFT)
    if need > ENCLOSURE.room():
        refuse_now(f"{name} works on text and may take {_size(need)} (assumed)")


def refuse_threads(name: str) -> None:
    """An input pipeline starts threads, and TensorFlow aborts where their stacks are refused.

    Where they are given nevertheless (`UncheckedMemory`), nothing needs to be refused.
    """
    if ENCLOSURE.rescue is not None:
        return
    if ENCLOSURE.last_room() > ALWAYS_LEFT or ENCLOSURE.refused_beyond() > THREAD_ROOM:
        return
    refuse_now(f"{name} starts threads of an input pipeline")


def refuse_now(what: str) -> None:
    """Refuse, with the figures."""
    limit, held = ENCLOSURE.limit, ENCLOSURE.look().held
    raise MemoryLimitExceeded(
        f"{what}, and {Size(max(limit - held, 0))} are left: the process holds {Size(held)}"
        f" (measured) of the guard's limit of {Size(limit)}"
    )


def _size(number: int) -> str:
    return str(Size(number)) if number < 1 << 62 else f"{number:.3g} bytes"


def recyclable_bytes() -> int:
    """What TensorFlow's allocator may have in hand: at most what it had handed out at its peak."""
    info = memory_info(_CPU)
    return 0 if info is None else max(info.peak - info.current, 0)


def bytes_in_use() -> int:
    """What TensorFlow's CPU allocator has handed out."""
    info = memory_info(_CPU)
    return 0 if info is None else info.current


def peak_bytes() -> int:
    """The most it had handed out."""
    info = memory_info(_CPU)
    return 0 if info is None else info.peak
