"""Which frames of a stack are the user's own, and what an error from the user's code says."""

from __future__ import annotations

import importlib.util
import re
import sysconfig
import traceback
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snugly.errors import ProgramFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

# Frames of these packages are the machinery, not the user's code.
_MACHINERY = ("tensorflow", "keras", "numpy", "snugly")
_INSTALLED = ("site-packages", "dist-packages")
# What IPython calls the cells that were typed in a terminal; Jupyter's have files of their own.
_TYPED = "<ipython-input-"
# AutoGraph runs a translation of the user's function from a file of its own.
_TRANSLATED = "__autograph_generated_file"
# Keras prints an error's own words in bold, between what it was calling and with what.
_BOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)
_LONGEST_REASON = 200


def users_line(frames: Iterable[Any]) -> str | None:
    """The innermost line that is the user's, as "train.py:48". Frames come outermost first.

    What lies outside of us is not it: there the user only asked us for a prediction.
    """
    for frame in reversed(list(frames)):
        if is_users(frame.filename):
            return f"{Path(frame.filename).name}:{frame.lineno}"
        if _is_ours(frame.filename):
            break
    return None


def running_line(frame: FrameType | None) -> str | None:
    """The same for code that is running, looked for from a frame outwards.

    Unknown inside AutoGraph's translation: the next line of the user's is not the one that did it.
    """
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_users(filename):
            return f"{Path(filename).name}:{frame.f_lineno}"
        if _is_ours(filename) or Path(filename).name.startswith(_TRANSLATED):
            break
        frame = frame.f_back
    return None


@cache
def is_users(filename: str) -> bool:
    """Whether a file is the user's: neither Python's, nor TensorFlow's, nor ours."""
    path = Path(filename)
    if filename.startswith(_TYPED):
        return True
    if filename.startswith("<") or path.name.startswith(_TRANSLATED):
        return False
    if any(path.is_relative_to(folder) for folder in _machinery_folders()):
        return False
    is_pythons = path.is_relative_to(sysconfig.get_path("stdlib"))
    return not is_pythons or any(folder in path.parts for folder in _INSTALLED)


@cache
def _is_ours(filename: str) -> bool:
    return Path(filename).is_relative_to(Path(__file__).parent.parent)


@cache
def _machinery_folders() -> tuple[str, ...]:
    specs = (importlib.util.find_spec(package) for package in _MACHINERY)
    return tuple(
        folder for spec in specs if spec for folder in spec.submodule_search_locations or ()
    )


def failed(what: str, problem: BaseException, hint: str | None = None) -> ProgramFailedError:
    """The error to raise where the user's code raised one: what failed, on which line, and why."""
    line = users_line(_frames(problem))
    where = f" at {line}" if line else ""
    return ProgramFailedError(f"{what}{where}: {_reason(problem)}", hint=hint)


def _frames(problem: BaseException) -> Iterator[Any]:
    yield from traceback.extract_tb(problem.__traceback__)
    # AutoGraph keeps where the lines of its translation came from; innermost first.
    translated = getattr(problem, "ag_error_metadata", None)
    yield from reversed(getattr(translated, "translated_stack", ()))


def _reason(problem: BaseException) -> str:
    translated = getattr(problem, "ag_error_metadata", None)
    text = getattr(translated, "cause_message", None) or f"{type(problem).__name__}: {problem}"
    bold = _BOLD.search(text)
    if bold is not None:
        text = f"{text.partition(':')[0]}: {bold[1]}"
    lines = text.strip().splitlines()
    return lines[0].rstrip(": ")[:_LONGEST_REASON]
