"""What grew between two runs: by kind, by layer, by line, resident and transient apart.

Either side may be a Record, a Prediction, or what one of them left as JSON; all have the same
words. Bytes are those asked for at the fullest moment; only `peak` is the allocator's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from snugly.recording.matching import match
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from snugly.timeline import LiveTensor

Provenance: TypeAlias = Literal["measured", "predicted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two things that are compared."""

    program: str
    provenance: Provenance
    peak: Size
    requested: Size
    resident: Size
    parts: Mapping[str, Size]
    tensors: Sequence[LiveTensor]
    low: Size | None = None  # of a prediction's range
    high: Size | None = None
    device: str | None = None
    tensorflow: str | None = None

    @property
    def transient(self) -> Size:
        """What the fullest moment had beyond what stays."""
        return Size(max(self.requested - self.resident, 0))


@dataclass(frozen=True, slots=True)
class Change:
    """One figure before and after. `was` is its name before, where that differs."""

    name: str | None  # None: what has no layer, or no line
    before: Size
    after: Size
    was: str | None = None

    @property
    def growth(self) -> Size:
        """Bytes that came; negative where bytes went."""
        return self.after - self.before

    @property
    def ratio(self) -> float | None:
        """Growth as a part of what was there before; None where nothing was."""
        return self.growth / self.before if self.before else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two sides and what changed from one to the other, the largest change first.

    The changes by kind, by layer and by line each add up to that of `requested`.
    """

    before: Side
    after: Side
    peak: Change
    requested: Change
    resident: Change
    transient: Change
    kinds: Sequence[Change]
    layers: Sequence[Change]
    lines: Sequence[Change]
    notes: Sequence[str] = ()

    @property
    def has_layers(self) -> bool:
        """Whether layers tell more than lines do: some tensor of either side has one."""
        return any(change.name is not None for change in self.layers)


def side_of(source: Any) -> Side:
    """A Record or a Prediction as one side of a comparison."""
    if isinstance(source, Side):
        return source
    predicted = hasattr(source, "low")
    facts = getattr(source, "facts", {})
    return Side(
        program=source.program,
        provenance="predicted" if predicted else "measured",
        peak=source.peak,
        requested=source.requested,
        resident=source.resident,
        parts=source.parts,
        tensors=source.tensors,
        low=source.low if predicted else None,
        high=source.high if predicted else None,
        device=getattr(source, "device", None),
        tensorflow=getattr(source, "tensorflow", None) or facts.get("tensorflow"),
    )


def compare(before: Any, after: Any) -> Comparison:
    """What changed from one run to another.

    Args:
        before: A Record, a Prediction or a Side.
        after: Likewise; it need not be of the same sort.
    """
    first, second = side_of(before), side_of(after)
    return Comparison(
        before=first,
        after=second,
        peak=Change("peak", first.peak, second.peak),
        requested=Change("requested", first.requested, second.requested),
        resident=Change("resident", first.resident, second.resident),
        transient=Change("transient", first.transient, second.transient),
        kinds=_changes(first.parts, second.parts, numbered=False),
        layers=_changes(
            _sums((tensor.layer, tensor.bytes) for tensor in first.tensors),
            _sums((tensor.layer, tensor.bytes) for tensor in second.tensors),
        ),
        lines=_changes(
            _sums((tensor.line, tensor.bytes) for tensor in first.tensors),
            _sums((tensor.line, tensor.bytes) for tensor in second.tensors),
            numbered=False,
        ),
        notes=tuple(_notes(first, second)),
    )


def _sums(amounts: Iterable[tuple[str | None, int]]) -> Counter[str | None]:
    sums: Counter[str | None] = Counter()
    for name, amount in amounts:
        sums[name or None] += int(amount)
    return sums


def _changes(
    before: Mapping[Any, int], after: Mapping[Any, int], *, numbered: bool = True
) -> tuple[Change, ...]:
    """All names of either side; those that appear under another number are one."""
    named_before = {name: int(size) for name, size in before.items() if name is not None}
    named_after = {name: int(size) for name, size in after.items() if name is not None}
    if numbered:
        pairs = match(named_before, named_after)
    else:
        pairs = [(name, name) for name in {**named_before, **named_after}]
    changes = [
        Change(
            name=old if new is None else new,
            before=Size(0 if old is None else named_before.get(old, 0)),
            after=Size(0 if new is None else named_after.get(new, 0)),
            was=old if new is not None and old != new else None,
        )
        for old, new in pairs
    ]
    if None in before or None in after:
        changes.append(Change(None, Size(before.get(None, 0)), Size(after.get(None, 0))))
    return tuple(
        sorted(
            changes,
            key=lambda change: (-abs(change.growth), -change.after, change.name or ""),
        )
    )


def _notes(before: Side, after: Side) -> Iterable[str]:
    if before.device and after.device and before.device != after.device:
        yield f"the first is of {before.device}, the second of {after.device}"
    predicted, measured = (before, after) if after.provenance == "measured" else (after, before)
    if predicted.provenance == "predicted" and measured.provenance == "measured":
        low, high = predicted.low, predicted.high
        if low is not None and high is not None:
            where = "inside" if low <= measured.peak <= high else "outside"
            yield f"the measured peak lies {where} the predicted range, {low} to {high}"
    for side, which in ((before, "first"), (after, "second")):
        listed = sum(int(tensor.bytes) for tensor in side.tensors)
        if listed != side.requested:
            yield (
                f"the tensors listed in the {which} have {Size(listed)}, not the"
                f" {side.requested} that were asked for: by layer and by line it is not complete"
            )
