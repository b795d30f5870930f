"""What is asked of a Jacobian, and how it would be computed: the words of `choosing`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from snugly.units import Provenance, Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.jacobians.lines import Lines, Mode
    from snugly.jacobians.subject import Subject

WAY_OUT: Final = "activations kept for rows would break the budget; columns keep none"
"""Why columns are computed although rows would be cheaper."""


@dataclass(frozen=True, slots=True)
class Portion:
    """How the lines of one output, or of one input, are computed."""

    lines: Lines
    chunk: int
    """How many lines at a time."""
    vectorised: bool
    transient: Size
    """What a chunk takes beside inputs, weights and result."""
    provenance: Provenance

    @property
    def turns(self) -> int:
        """How many chunks there are."""
        return -(-self.lines.count // self.chunk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to compute a Jacobian; `print` it."""

    method: str
    """`reverse` or `forward`; `blocks` where examples do not mix; `sparse`."""
    mode: Mode
    reason: str
    chunk: int
    """Lines (rows in reverse mode, columns in forward mode) that are computed at a time."""
    lines: int
    """How many products there are in all."""
    vectorised: bool
    """Whether the lines of a chunk are computed side by side."""
    result: Size
    """The Jacobian itself."""
    peak: Size
    """Beside inputs and weights, at most; with the result where that is in memory."""
    provenance: Provenance
    """Whether the peak is predicted or was measured on one line."""
    streamed: bool = False
    lazy: bool = False
    """Whether blocks are made when somebody asks for them, and kept nowhere."""
    batch: int = 0
    """How many examples at a time; 0 for all of them."""
    batches: int = 1
    segments: int = 0
    """In how many segments activations are computed again, about; 0 where they are kept."""
    notes: tuple[str, ...] = ()
    portions: tuple[Portion, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        how = f"{self.chunk} at a time" if self.vectorised else "one at a time"
        kind = "rows" if self.mode == "reverse" else "columns"
        where = "on disk" if self.streamed else "in memory"
        where = "when asked for" if self.lazy else where
        how += f", activations made again in {self.segments} segments" if self.segments else ""
        how += f", {self.batch} examples at a time" if self.batch else ""
        said = "".join(f"\n  {note}" for note in self.notes)
        return (
            f"{self.method}: {self.lines} {kind}, {how}; result {self.result} {where},"
            f" peak {self.peak} ({self.provenance}); {self.reason}{said}"
        )

    @property
    def is_way_out(self) -> bool:
        """Whether rows would be cheaper, and only their activations speak against them."""
        return self.reason.startswith(WAY_OUT)

    def starts(self) -> Iterator[int]:
        """The first example of each batch; the last begins earlier rather than being smaller."""
        total = self.portions[0].lines.total
        for number in range(self.batches):
            yield min(number * self.batch, total - self.batch) if self.batch else 0

    def noting(self, *notes: str) -> Plan:
        """The same with more to say."""
        return replace(self, notes=(*self.notes, *notes)) if notes else self


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a plan."""

    budget: Size | None = None
    mode: str = "auto"
    examples: int = 0
    """How many examples were found not to mix; 0 where they do, or there are none."""
    total: int = 0
    """How many examples there are in all, where the subject has only some of them."""
    whole: bool = True
    """Whether the zeros between examples are part of the result."""
    streamed: bool = False
    lazy: bool = False
    """Whether blocks are made when somebody asks for them: as if streamed, but into no file."""
    item: int = 0
    """Bytes of an entry of the result, where that is not the input's own type."""
    available: Size | None = None
    """What the machine has, where no budget is given."""


def result_bytes(subject: Subject, request: Request) -> Size:
    """What the Jacobian itself takes."""
    total = 0
    for output in subject.outputs:
        for source in subject.sources:
            item = request.item or source.dtype.size
            each = max(1, request.examples)
            blocks = (request.total or each) ** (2 if request.whole else 1)
            total += (output.size // each) * (source.size // each) * blocks * item
    return Size(total)


def balanced(count: int, chunk: int) -> int:
    """The smallest chunk with as few turns."""
    turns = -(-count // chunk)
    return -(-count // turns)
