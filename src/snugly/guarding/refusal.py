"""Reading in a program's last words whether memory was refused it, how much, where, for what.

Pure: text in, facts out. Nothing is said that does not stand there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from snugly.errors import InvalidSizeError
from snugly.units import Size

_REFUSED: Final = re.compile(
    r"^(?:\w+\.)*(?:_ArrayMemoryError|MemoryError|ResourceExhaustedError|MemoryLimitExceeded)\b"
    r"|\bstd::bad_alloc\b|Cannot allocate memory\b|\bOOM when allocating tensor\b"
    r"|\bfailed to allocate memory\b|\bout of memory\b",
    re.MULTILINE | re.IGNORECASE,
)
_CARD: Final = re.compile(r"\bGPU_\d|device:GPU|\bCUDA|\bcuda")
_LAST_WORDS: Final = 16_384
"""Characters at the end in which the cause of the end stands."""

_ASKED: Final = re.compile(r"Unable to allocate (\d+(?:\.\d+)? (?:bytes|[KMGTPE]iB))")
_TENSOR: Final = re.compile(
    r"OOM when allocating tensor with shape\[([\d, ]*)\] and type (\w+)(?: on (\S+))?"
)
_BYTES_OF: Final = {
    "float": 4,
    "double": 8,
    "half": 2,
    "bfloat16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "complex64": 8,
    "complex128": 16,
}  # fmt: skip - names as tensorflow::DataTypeString gives them

_FRAME: Final = re.compile(r'^ *File "([^"\n]{1,1000})", line (\d{1,9}), in', re.MULTILINE)
_FAULT_FRAME: Final = re.compile(r'^ *File "([^"\n]{1,1000})", line (\d{1,9}) in', re.MULTILINE)
_CONVOLUTION: Final = re.compile(
    r'^ *File "[^"\n]*(?:tensorflow|keras)[^"\n]*", line \d+ in _{0,2}\w*conv', re.MULTILINE
)
_FAULT: Final = "Fatal Python error:"
_CURRENT: Final = "Current thread"
_TRACEBACK: Final = "Traceback (most recent call last)"
_OWN: Final = str(Path(__file__).parent.parent)
_NOT_THE_USERS: Final = ("site-packages", "dist-packages", "<frozen", "/lib/python3", _OWN)


def says_refused(text: str) -> bool:
    """Whether the last words speak of the host's memory that was refused; a card's is not ours."""
    last = text[-_LAST_WORDS:]
    found = [match.start() for match in _REFUSED.finditer(last)]
    if not found:
        return False
    end = last.find("\n", found[-1])
    return _CARD.search(last[found[-1] : end if end >= 0 else None]) is None


def asked_for(text: str) -> int | None:
    """How many bytes the last refused allocation wanted, where the text tells."""
    last = text[-_LAST_WORDS:]
    written = _ASKED.findall(last)
    if written:
        try:
            return int(Size(written[-1]))
        except InvalidSizeError:
            return None
    tensors = _TENSOR.findall(last)
    return _tensor_bytes(*tensors[-1][:2]) if tensors else None


def tensor_in(text: str) -> str | None:
    """The tensor that found no room, with its size, as TensorFlow names it."""
    found = _TENSOR.findall(text[-_LAST_WORDS:])
    if not found:
        return None
    shape, kind, device = found[-1]
    size = _tensor_bytes(shape, kind)
    amount = "" if size is None else f", {_as_size(size)}"
    place = f" on {device}" if device else ""
    return f"{kind}[{shape}]{amount}{place}"


def line_in(text: str) -> str | None:
    """`train.py:12`: the user's innermost line of the last traceback; None without one.

    A crash in native code is told by Python's fault handler, which puts the innermost frame first.
    """
    fault = text.rfind(_FAULT)
    if fault >= 0:
        current = max(text.find(_CURRENT, fault), fault)
        # The thread that was hit may be one that only waits; then another's line stands for it.
        frames = _users(_FAULT_FRAME.findall(text[current:]))
        frames = frames or _users(_FAULT_FRAME.findall(text[fault:]))
        return frames[0] if frames else None
    start = text.rfind(_TRACEBACK)
    frames = _users(_FRAME.findall(text[start:])) if start >= 0 else []
    return frames[-1] if frames else None


def crashed_in_convolution(text: str) -> bool:
    """Whether Python's fault handler shows a convolution of TensorFlow as what ran."""
    fault = text.rfind(_FAULT)
    return fault >= 0 and _CONVOLUTION.search(text[fault:]) is not None


def is_users(path: str) -> bool:
    """Whether a file is the user's own: no installed package, Python's library or Snugly."""
    return not any(part in path for part in _NOT_THE_USERS)


def _users(frames: list[tuple[str, str]]) -> list[str]:
    return [f"{path}:{number}" for path, number in frames if is_users(path)]


def _tensor_bytes(shape: str, kind: str) -> int | None:
    if kind not in _BYTES_OF:
        return None
    product = _BYTES_OF[kind]
    for dimension in shape.replace(" ", "").split(","):
        if dimension:
            product *= int(dimension)
    return product


def _as_size(number: int) -> str:
    try:
        return str(Size(number))
    except InvalidSizeError:
        return f"{number:,} bytes"
