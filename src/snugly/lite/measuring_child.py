"""What a real interpreter takes for a model; run in a process of its own, never imported.

    python -m snugly.lite.measuring_child FOLDER

The folder holds `model.tflite` and the request: the runtime and, for `micro`, the arena to start
in. The model is also run once, on zeros: a file that loads and then fails is of no use.
"""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError, MissingDependencyError
from snugly.lite.children import LONGEST_REASON, answering, reason_of

if TYPE_CHECKING:
    from pathlib import Path

_STANDARD_ERROR: Final = 2
THREADS: Final = 1
LONGEST_LOG: Final = 1 << 20


def measure(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Bytes that the interpreter takes, and what they are."""
    source = (folder / "model.tflite").read_bytes()
    if request["runtime"] == "micro":
        return _micro(source, int(request["arena"]))
    return _litert(source, delegate=request["runtime"] == "xnnpack")


def _micro(source: bytes, arena: int) -> dict[str, Any]:
    try:
        from tflite_micro import runtime
    except ImportError:
        raise MissingDependencyError(
            "TFLite Micro's interpreter is not installed", hint="pip install tflite-micro"
        ) from None
    with tempfile.TemporaryFile() as held:
        kept = os.dup(_STANDARD_ERROR)
        os.dup2(held.fileno(), _STANDARD_ERROR)
        try:
            interpreter = runtime.Interpreter.from_bytes(source, arena_size=arena)
            interpreter.print_allocations()
        except RuntimeError as error:
            # The interpreter raises one sentence for everything; the reason is what it wrote.
            raise InputError(_first_words(held) or reason_of(error), code="SNG573") from None
        finally:
            os.dup2(kept, _STANDARD_ERROR)
        log = _written(held)
    sizes = {key: int(size) for key, size in re.findall(r"allocation (head|tail) (\d+)", log)}
    details = interpreter.get_input_details(0)
    interpreter.set_input(np.zeros(details["shape"], details["dtype"]), 0)
    interpreter.invoke()
    interpreter.get_output(0)
    return {"bytes": sizes["head"] + sizes["tail"], **sizes}


def _written(held: IO[bytes]) -> str:
    held.seek(0)
    return held.read(LONGEST_LOG).decode(errors="replace")


def _first_words(held: IO[bytes]) -> str:
    lines = [line.strip() for line in _written(held).splitlines() if line.strip()]
    return lines[0][:LONGEST_REASON] if lines else ""


def _litert(source: bytes, *, delegate: bool) -> dict[str, Any]:
    try:
        from ai_edge_litert import interpreter as lite
    except ImportError:
        raise MissingDependencyError(
            "LiteRT's interpreter is not installed", hint="pip install ai-edge-litert"
        ) from None
    kinds = lite.OpResolverType
    kind = kinds.BUILTIN if delegate else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = lite.Interpreter(
        model_content=source, experimental_op_resolver_type=kind, num_threads=THREADS
    )
    before = heap_bytes()
    interpreter.allocate_tensors()
    after = heap_bytes()
    for details in interpreter.get_input_details():
        interpreter.set_tensor(details["index"], np.zeros(details["shape"], details["dtype"]))
    interpreter.invoke()
    # What a kernel keeps from its first run on, such as weights that it has dequantised.
    taken = max(after, heap_bytes()) - before
    return {"bytes": taken or None}


def heap_bytes() -> int:
    """Bytes that malloc has given out; 0 where the C library does not say."""

    class Information(ctypes.Structure):
        _fields_ = tuple(  # mallinfo2 of malloc.h, glibc 2.33
            (name, ctypes.c_size_t)
            for name in (
                *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
                *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
            )
        )

    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return 0
    ask.restype = Information
    found = ask()
    return int(found.uordblks) + int(found.hblkhd)


if __name__ == "__main__":
    answering(measure)
