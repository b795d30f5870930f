"""Exceptions as the text that Python would print of them, and the exit codes they carry.

They are recognised by name and words, so that TensorFlow is not imported to look at its errors.
"""

from __future__ import annotations

from typing import Final

MOST_LINKS: Final = 20
"""A chain of causes is followed so far; one that runs in a circle ends."""

LONGEST_MESSAGE: Final = 1 << 20


def text_of(error: BaseException) -> str:
    """The chain of exceptions, the first cause first, each as `module.Name: message`."""
    lines: list[str] = []
    for link in reversed(_chain(error)):
        kind = type(link)
        module = "" if kind.__module__ in {"builtins", "__main__"} else f"{kind.__module__}."
        lines.append("Traceback (most recent call last):" if not lines else _CHAINED)
        message = _message(link)
        lines.append(f"{module}{kind.__qualname__}: {message}" if message else kind.__qualname__)
        lines += [str(note) for note in getattr(link, "__notes__", ())]
    return "\n".join(lines)


_CHAINED: Final = "The above exception was the direct cause of the following exception:"


def exit_code_of(error: BaseException) -> int | None:
    """The exit code of a child process, where the exception is about one."""
    code = getattr(error, "returncode", None)
    return code if isinstance(code, int) else None


def _message(error: BaseException) -> str:
    try:
        message = getattr(error, "message", None)
        text = message if isinstance(message, str) and message else str(error)
    except Exception:  # noqa: BLE001 - somebody else's __str__ may do anything
        return ""
    return text[:LONGEST_MESSAGE]


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    waiting = [error]
    while waiting and len(chain) < MOST_LINKS:
        link = waiting.pop(0)
        if link in chain:
            continue
        chain.append(link)
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions
        following = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if following is not None:
            waiting.append(following)
    return chain
