"""Smaller `.tflite` files: the same answers in less memory.

::

    from snugly import lite

    shrunk = lite.shrink("model.tflite", memory="64KiB", out="small.tflite")
    print(shrunk.before.arena, "→", shrunk.after.arena, shrunk.fits)
    for step in shrunk.steps:
        print(step.name, step.saved, step.safety, step.note)

No TensorFlow is needed, and nothing of the model is run, unless it has to be converted or results
may change: then real converters, quantisers and interpreters work in processes of their own.
"""

from __future__ import annotations

from snugly.lite.header import header_text
from snugly.lite.result import AccuracyChange, LiteShrunk, Measured, OutputChange, StepTaken
from snugly.lite.shrinking import shrink

__all__ = [
    "AccuracyChange",
    "LiteShrunk",
    "Measured",
    "OutputChange",
    "StepTaken",
    "header_text",
    "shrink",
]
