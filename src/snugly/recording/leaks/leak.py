"""Leak: one thing that grows, its kind, the line of the user's code, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.codes import REGISTRY
from snugly.findings import Finding
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable

CODES: Final = {
    "retracing": "SNG320",
    "recompiling": "SNG321",
    "model-in-loop": "SNG322",
    "layer-in-loop": "SNG323",
    "optimizer-in-loop": "SNG324",
    "variables-in-loop": "SNG325",
    "dataset-in-loop": "SNG326",
    "kept-tensors": "SNG327",
    "kept-arrays": "SNG328",
    "kept-history": "SNG329",
    "kept-by-callback": "SNG330",
    "persistent-tape": "SNG331",
    "kept-tape": "SNG332",
    "growing-graph": "SNG333",
    "session-in-loop": "SNG334",
    "py-function": "SNG335",
    "lookup-table": "SNG336",
    "native": "SNG337",
}
"""Every kind of leak, and the code of its page in the documentation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """Something that grows for as long as a loop turns."""

    kind: str
    path: str
    line: int
    """Where it grows: the line that keeps things, or makes what is never given back."""
    bytes_per_iteration: int
    """Measured; 0 where the growth of this thing could not be told from the rest."""
    iterations: int
    """How often it was seen to grow."""
    count: int
    """How many there were at the end: things alive, traces, operations."""
    message: str
    created: str | None = None
    """Where the things that are kept were made, as "train.py:12", if that is another line."""
    loop: str | None = None
    """The line of the loop that leads there, if it is another one."""
    held_by: str | None = None
    """The name of what holds them."""

    @property
    def code(self) -> str:
        """The message code of its kind."""
        return CODES[self.kind]

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON; what does not apply is left out."""
        data = {
            "kind": self.kind,
            "path": self.path,
            "line": self.line,
            "bytes_per_iteration": self.bytes_per_iteration,
            "iterations": self.iterations,
            "count": self.count,
            "code": self.code,
            "message": self.message,
            "created": self.created,
            "loop": self.loop,
            "held_by": self.held_by,
        }
        return {key: value for key, value in data.items() if value is not None}

    def to_finding(self) -> Finding:
        """The same as a finding, with the meaning and the remedy of its kind."""
        entry = REGISTRY[self.code]
        size = Size(self.bytes_per_iteration)
        measured = f"{size} an iteration (measured)" if self.bytes_per_iteration else "size unknown"
        return Finding(
            code=self.code,
            title=entry.title,
            cause=entry.meaning,
            remedy=entry.remedy,
            path=self.path,
            line=self.line,
            message=self.message,
            evidence=(f"{self.iterations} iterations, {measured}",),
        )


def leaks_data(leaks: Iterable[Leak]) -> dict[str, Any]:
    """Plain data of all leaks, for `snugly profile --leaks --output-format json`."""
    return {"leaks": [leak.to_data() for leak in leaks]}
