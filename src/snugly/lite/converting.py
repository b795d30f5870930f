"""A Keras model or SavedModel → the bytes of a `.tflite`, by TensorFlow's converter.

The converter runs in a process of its own: what it does not like it sometimes answers with a crash,
and TensorFlow stays out of this process. Weights are those of the file, or those that the script
gives its model. The batch is one example; other open dimensions have to be given by the model.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from snugly.lite.children import folder_for, run_child
from snugly.readers.locate import TFLITE, find_place

SECONDS: Final = 600.0
_SCRIPT: Final = ":"


@dataclass(frozen=True, slots=True)
class Converted:
    """The `.tflite` of a program, in float, and what was done."""

    data: bytes
    name: str
    note: str


def is_convertible(source: Any) -> bool:
    """Whether a source is a program that would have to be converted first: no `.tflite`, no bytes.

    `model.keras`, a SavedModel folder, `script.py:name` or `module:name`.
    """
    if not isinstance(source, str | os.PathLike):
        return False
    text = os.fspath(source)
    if not isinstance(text, str):
        return False
    path = Path(text)
    if path.suffix.lower() == ".tflite":
        return False
    try:
        is_folder = (path / "saved_model.pb").is_file()
    except (OSError, ValueError):
        return False
    ends, separator, name = text.rpartition(_SCRIPT)
    is_named = bool(separator and ends) and name.isidentifier()
    return path.suffix.lower() == ".keras" or is_folder or is_named


def convert(source: str | os.PathLike[str], *, allow_code: bool = False) -> Converted:
    """Convert a program for one example at a time.

    Args:
        source: `model.keras`, a SavedModel folder, `script.py:name` or `module:name`.
        allow_code: let a `.keras` file run code that it carries, a SavedModel touch files.

    Raises:
        InputError: SNG572 where the converter has no operators for the model, and what reading
            a program raises.
    """
    place = find_place(os.fspath(source))  # says at once what is not there
    assert place.kind != TFLITE
    with folder_for({"program": os.fspath(source), "allow_code": allow_code}) as folder:
        answer = run_child("converting_child", folder, "the converter", seconds=SECONDS)
        data = (folder / "model.tflite").read_bytes()
    return Converted(data, place.label, str(answer["note"]))
