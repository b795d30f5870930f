"""What real interpreters take for a model, asked in processes of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from snugly.errors import InputError, MissingDependencyError
from snugly.lite.children import folder_for, run_child
from snugly.predicting.lite import predict_tflite
from snugly.units import Size

SECONDS: Final = 120.0
LARGEST_MEASURED: Final = 1 << 30
"""Models that are predicted to need more are not run."""
WHAT: Final = {
    "micro": "head and tail of TFLite Micro's arena, 64-bit package",
    "litert": "heap of LiteRT without delegates, one run",
    "xnnpack": "heap of LiteRT with XNNPACK, one run",
}


@dataclass(frozen=True, slots=True)
class Run:
    """How a model ran: what it took, or why it did not start; neither where nobody could ask."""

    bytes: Size | None = None
    refusal: str | None = None


def run_once(source: bytes, runtime: str) -> Run:
    """Load a model into the real interpreter, run it once on zeros, and see what it takes.

    Of `micro`, in an arena of exactly the size that is predicted for it, so that a prediction that
    is too small is a refusal.
    """
    predicted = predict_tflite(source, runtime)
    if predicted.peak > LARGEST_MEASURED:
        return Run()
    arena = int(predicted.arena)
    with folder_for({"runtime": runtime, "arena": arena}) as folder:
        (folder / "model.tflite").write_bytes(source)
        try:
            answer = run_child("measuring_child", folder, "the interpreter", seconds=SECONDS)
        except MissingDependencyError:
            return Run()
        except InputError as error:
            return Run(refusal=error.message)
    taken = answer.get("bytes")
    return Run(None if taken is None else Size(int(taken)))
