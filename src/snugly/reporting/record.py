"""A record, as data and as a drawing: the peak in a sentence, then what it was made of.

Every number in it was measured. The terminal shows the largest; JSON has everything.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.text import Text

from snugly.recording.rest import rest_of
from snugly.reporting.prediction import parts_sentence
from snugly.reporting.terminal import make_facts, make_table, marked
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from snugly.recording.record import Record
    from snugly.recording.rest import Rest
    from snugly.timeline import LiveTensor

TOP_TENSORS: Final = 10
TOP_LAYERS: Final = 10
"""How many rows the terminal shows; JSON has them all."""

_LONGEST_NAME: Final = 60


def record_data(record: Record) -> dict[str, Any]:
    """The keys of the public contract and what else the record knows, sizes in plain bytes."""
    rest = rest_of(record)
    return {
        "program": record.program,
        "device": record.device,
        "provenance": "measured",
        "peak": int(record.peak),
        "requested": int(record.requested),
        "resident": int(record.resident),
        "parts": {kind: int(size) for kind, size in record.parts.items()},
        "tensors": [
            {
                "bytes": int(tensor.bytes),
                "kind": tensor.kind,
                "op": tensor.op,
                "layer": tensor.layer,
                "line": tensor.line,
            }
            for tensor in record.tensors
        ],
        "layers": [
            {"layer": layer, "bytes": sum(kinds.values()), "parts": dict(kinds)}
            for layer, kinds in by_layer(record.tensors)
        ],
        "rest": None if rest is None else rest.to_data(),
        "windows": [
            {
                "begin": window.begin,
                "end": window.end,
                "events": window.events,
                "peak": window.peak,
                "before": window.before,
            }
            for window in record.windows
        ],
        "notes": list(record.notes),
        "facts": {str(name): _plain(value) for name, value in record.facts.items()},
    }


def by_layer(tensors: Iterable[LiveTensor]) -> list[tuple[str | None, Counter[str]]]:
    """Bytes at the peak by layer, each by kind, the largest layer first; None has no layer."""
    layers: dict[str | None, Counter[str]] = {}
    for tensor in tensors:
        layers.setdefault(tensor.layer, Counter())[tensor.kind] += int(tensor.bytes)
    return sorted(layers.items(), key=lambda item: (-item[1].total(), item[0] or ""))


def peak_sentence(record: Record) -> str:
    """`train.py peaked at 635.7 MiB on CPU:0`."""
    what = shown(record.program) or "the program"
    return f"{what} peaked at {record.peak} on {record.device}"


def draw_record(record: Record, next_command: str | None = None) -> RenderableType:
    """The peak, what it was made of, the largest tensors and layers, and the next command."""
    headline = Text.assemble(("measured", "bold"), f": {peak_sentence(record)}")
    rows: list[RenderableType] = [headline, make_facts(_facts(record))]
    if record.tensors:
        rows += [Text(""), _draw_tensors(record.tensors)]
        layers = by_layer(record.tensors)
        if any(layer is not None for layer, _ in layers):
            rows += [Text(""), _draw_layers(layers)]
    if record.notes:
        rows += [Text(""), *(labelled("note", shown(note, 400), "cyan") for note in record.notes)]
    if next_command is not None:
        rows += [Text(""), labelled("next", next_command, "green")]
    return Group(*rows)


def shown(text: str, longest: int = _LONGEST_NAME) -> str:
    """A name out of a file as a terminal may have it: no control characters, not too long.

    Cut in the middle, because operations differ at their ends.
    """
    clean = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    if len(clean) <= longest:
        return clean
    half = (longest - 1) // 2
    return f"{clean[:half]}…{clean[-half:]}"


def labelled(label: str, text: str, style: str) -> Text:
    """A line that begins with what it is: `note: …`."""
    return Text.assemble((f"{label}: ", style), text)


def _facts(record: Record) -> list[tuple[str, str | Text]]:
    facts: list[tuple[str, str | Text]] = [
        ("made of", marked(parts_sentence(record.parts), "measured")),
        ("requested", marked(record.requested, "measured")),
        ("resident", marked(record.resident, "measured")),
    ]
    rest = rest_of(record)
    if rest is not None:
        facts.append(("outside the allocator", _draw_rest(rest)))
    if record.windows:
        facts.append(("seen in full", _windows_sentence(record)))
    versions = [
        f"{title} {shown(str(record.facts[key]))}"
        for key, title in (("tensorflow", "TensorFlow"), ("keras", "Keras"), ("python", "Python"))
        if record.facts.get(key)
    ]
    if versions:
        facts.append(("recorded with", ", ".join(versions)))
    return facts


def _draw_rest(rest: Rest) -> Text:
    return Text.assemble(
        str(rest.outside),
        (f" (measured: of {rest.whole} that {rest.of} had at the fullest sample)", "dim"),
    )


def _windows_sentence(record: Record) -> str:
    events = sum(window.events for window in record.windows)
    count = len(record.windows)
    windows = "one window" if count == 1 else f"{count} windows"
    highest = Size(max(window.peak for window in record.windows))
    sentence = f"{windows}, {events:,} allocations and frees"
    if highest < record.peak:
        return f"{sentence}; the fullest reached {highest} of the peak"
    return sentence


def _draw_tensors(tensors: Sequence[LiveTensor]) -> RenderableType:
    table = make_table(
        "live at the peak", "kind", "layer", "op", "line", right=("live at the peak",)
    )
    for tensor in tensors[:TOP_TENSORS]:
        layer, line = shown(tensor.layer or "", 30), shown(tensor.line or "", 30)
        table.add_row(str(Size(tensor.bytes)), tensor.kind, layer, shown(tensor.op), line)
    rest = tensors[TOP_TENSORS:]
    if rest:
        size = Size(sum(int(tensor.bytes) for tensor in rest))
        table.add_row(str(size), "", f"{len(rest):,} more", "", "", style="dim")
    return table


def _draw_layers(layers: Sequence[tuple[str | None, Counter[str]]]) -> RenderableType:
    whole = sum(kinds.total() for _, kinds in layers)
    table = make_table("by layer", "", "layer", "made of", right=("by layer", ""))
    for layer, kinds in layers[:TOP_LAYERS]:
        size = kinds.total()
        share = f"{size / whole:.0%}" if whole else ""
        made_of = parts_sentence({kind: Size(amount) for kind, amount in kinds.items()})
        name = "(no layer)" if layer is None else shown(layer, 40)
        table.add_row(str(Size(size)), share, name, made_of)
    rest = layers[TOP_LAYERS:]
    if rest:
        size = sum(kinds.total() for _, kinds in rest)
        share = f"{size / whole:.0%}" if whole else ""
        table.add_row(str(Size(size)), share, f"{len(rest):,} more", "", style="dim")
    return table


def _plain(value: Any) -> Any:
    """A fact as JSON can have it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value)
