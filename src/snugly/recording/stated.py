"""One side of a comparison from JSON that `snugly predict` or `snugly report` printed.

The file may come from anywhere: its size is bounded, every value is checked before it is used.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import UnreadableRecordError
from snugly.recording.comparison import Side
from snugly.timeline import LiveTensor
from snugly.units import LARGEST, Size

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_FILE: Final = Size("256 MiB")
"""A report of a million tensors has some 200 MiB."""

KNOWN_VERSION: Final = 1  # of `schema_version`
_LONGEST: Final = 4096  # characters of a name
_HINT: Final = (
    "give what `snugly predict PROGRAM --output-format json` or"
    " `snugly report RUN --output-format json` printed"
)


def is_stated(path: Path) -> bool:
    """Whether a file begins as JSON does."""
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))
    except OSError:
        return False


def read_stated(path: Path) -> Side:
    """The prediction or the report that a file holds.

    Raises:
        UnreadableRecordError: It is no JSON, too large, of a later version, or something else.
    """
    try:
        data = json.loads(_bounded(path))
    except UnreadableRecordError:  # a ValueError as well
        raise
    except OSError as problem:
        raise UnreadableRecordError(f"cannot read {path}: {problem.strerror}") from problem
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError, too
        raise _unusable(path, "is not whole JSON") from None
    if not isinstance(data, dict):
        raise _unusable(path, "is JSON, but neither a prediction nor a report")
    return _Checked(path, data).side()


def _bounded(path: Path) -> bytes:
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise _unusable(path, f"has {Size(size)}; {LARGEST_FILE} is the most that is read")
    return path.read_bytes()


class _Checked:
    """Takes values out of untrusted data, or says which of them cannot be used."""

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
        self._path = path
        self._data = data

    def side(self) -> Side:
        """All of it, checked."""
        version = self._data.get("schema_version")
        if isinstance(version, int) and version > KNOWN_VERSION:
            raise UnreadableRecordError(
                f"{self._path} has schema_version {version}; this Snugly knows {KNOWN_VERSION}",
                code="SNG302",
            )
        predicted = "low" in self._data and "high" in self._data
        facts = self._data.get("facts")
        tensorflow = self._data.get("tensorflow")
        if tensorflow is None and isinstance(facts, dict):
            tensorflow = facts.get("tensorflow")
        return Side(
            program=self._text("program", self._data.get("program")) or self._path.name,
            provenance="predicted" if predicted else "measured",
            peak=self._size("peak", self._data.get("peak")),
            requested=self._size("requested", self._data.get("requested")),
            resident=self._size("resident", self._data.get("resident")),
            parts=self._parts(),
            tensors=self._tensors(),
            low=self._size("low", self._data["low"]) if predicted else None,
            high=self._size("high", self._data["high"]) if predicted else None,
            device=self._text("device", self._data.get("device")),
            tensorflow=self._text("tensorflow", tensorflow),
        )

    def _parts(self) -> dict[str, Size]:
        parts = self._data.get("parts")
        if not isinstance(parts, dict):
            raise self._wrong("parts", "sizes by kind")
        return {kind[:_LONGEST]: self._size(f"parts.{kind:.40}", parts[kind]) for kind in parts}

    def _tensors(self) -> tuple[LiveTensor, ...]:
        tensors = self._data.get("tensors")
        if not isinstance(tensors, list):
            raise self._wrong("tensors", "a list")
        return tuple(self._tensor(position, entry) for position, entry in enumerate(tensors))

    def _tensor(self, position: int, entry: Any) -> LiveTensor:
        where = f"tensors[{position}]"
        if not isinstance(entry, dict):
            raise self._wrong(where, "a tensor")
        return LiveTensor(
            bytes=self._size(f"{where}.bytes", entry.get("bytes")),
            kind=self._text(f"{where}.kind", entry.get("kind")) or "",
            op=self._text(f"{where}.op", entry.get("op")) or "",
            layer=self._text(f"{where}.layer", entry.get("layer")),
            line=self._text(f"{where}.line", entry.get("line")),
        )

    def _size(self, key: str, value: Any) -> Size:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise self._wrong(key, "a number of bytes")
        return Size(value)

    def _text(self, key: str, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong(key, "a text")
        # Half a surrogate pair can be written in JSON, but not printed.
        return value[:_LONGEST].encode("utf-8", "replace").decode("utf-8")

    def _wrong(self, key: str, wanted: str) -> UnreadableRecordError:
        return _unusable(
            self._path,
            f"is JSON, but neither a prediction nor a report: {key!r} is missing or not {wanted}",
        )


def _unusable(path: Path, why: str) -> UnreadableRecordError:
    return UnreadableRecordError(f"{path} {why}", hint=_HINT)
