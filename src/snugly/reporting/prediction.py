"""A prediction, as data and as a drawing: the verdict in a sentence, then what it rests on.

The report needs only the attributes of `Described`, so that it can be tested with plain objects
and serves measured runs as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from rich.console import Group
from rich.text import Text

from snugly.reporting.distribution import distribution_of, draw_distribution
from snugly.reporting.terminal import make_facts, make_table, marked
from snugly.units import Size, format_range, format_together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from snugly.devices import Budget


class LiveTensor(Protocol):
    """A tensor that is live at the peak."""

    @property
    def bytes(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def op(self) -> str: ...
    @property
    def layer(self) -> str | None: ...
    @property
    def line(self) -> str | None: ...


class Described(Protocol):
    """What the report needs to know of a prediction."""

    @property
    def program(self) -> str: ...
    @property
    def training(self) -> bool: ...
    @property
    def peak(self) -> Size: ...
    @property
    def low(self) -> Size: ...
    @property
    def high(self) -> Size: ...
    @property
    def requested(self) -> Size: ...
    @property
    def resident(self) -> Size: ...
    @property
    def parts(self) -> Mapping[str, Size]: ...
    @property
    def tensors(self) -> Sequence[LiveTensor]: ...
    @property
    def verdict(self) -> str | None: ...
    @property
    def budget(self) -> Budget | None: ...
    @property
    def peak_where(self) -> str | None: ...
    @property
    def suggestions(self) -> Sequence[str]: ...
    @property
    def notes(self) -> Sequence[str]: ...
    @property
    def tensorflow(self) -> str | None: ...
    @property
    def elapsed(self) -> float: ...


TOP_TENSORS: Final = 8
"""How many tensors the terminal shows; JSON has them all."""

_PLURAL: Final = {
    "weight": "weights",
    "gradient": "gradients",
    "activation": "activations",
    "input": "inputs",
    "output": "outputs",
}

_VERDICT: Final = {
    "fits": ("fits", "bold green"),
    "does-not-fit": ("error[SNG101]", "bold red"),
    "uncertain": ("warning[SNG102]", "bold yellow"),
    None: ("predicted", "bold"),
}


def prediction_data(prediction: Described) -> dict[str, Any]:
    """The keys of the public contract, sizes in plain bytes; `distribution` under a strategy."""
    budget = prediction.budget
    distribution = distribution_of(prediction)
    added = {} if distribution is None else {"distribution": distribution.to_data()}
    return {
        "program": prediction.program,
        "training": prediction.training,
        "peak": int(prediction.peak),
        "low": int(prediction.low),
        "high": int(prediction.high),
        "requested": int(prediction.requested),
        "resident": int(prediction.resident),
        "parts": {kind: int(size) for kind, size in prediction.parts.items()},
        "tensors": [
            {
                "bytes": int(tensor.bytes),
                "kind": tensor.kind,
                "op": tensor.op,
                "layer": tensor.layer,
                "line": tensor.line,
            }
            for tensor in prediction.tensors
        ],
        "verdict": prediction.verdict,
        "budget": None if budget is None else budget.to_data(),
        "headroom": None if budget is None else int(budget.bytes - prediction.peak),
        "peak_where": prediction.peak_where,
        "suggestions": list(prediction.suggestions),
        "notes": list(prediction.notes),
        "tensorflow": prediction.tensorflow,
        "elapsed": round(prediction.elapsed, 3),
        **added,
    }


def verdict_sentence(prediction: Described) -> str:
    """What it needs, what there is: the sentence after the code.

    `one training step needs 18.3 GiB (17.6–19.1 GiB predicted); GPU:0 offers 14.7 GiB (measured)`
    """
    what = "one training step" if prediction.training else "one inference step"
    spread = format_range(prediction.low, prediction.high)
    need = f"{what} needs {prediction.peak} ({spread} predicted)"
    budget = prediction.budget
    if budget is None:
        return need
    return f"{need}; {budget.description} offers {budget.bytes} ({budget.provenance})"


def parts_sentence(parts: Mapping[str, Size]) -> str:
    """What the peak is made of, largest first, in one unit.

    Parts too small to show in that unit are left out: `activations 11.2 · weights 1.6 GiB`.
    """
    ordered = sorted(parts.items(), key=lambda part: part[1], reverse=True)
    numbers, unit = format_together([size for _, size in ordered])
    shown = [
        f"{_PLURAL.get(kind, kind)} {number}"
        for (kind, _), number in zip(ordered, numbers, strict=True)
        if number not in {"0", "0.0"}
    ]
    return f"{' · '.join(shown)} {unit}" if shown else "nothing"


def draw_prediction(prediction: Described) -> RenderableType:
    """Verdict, peak, what it is made of, the largest tensors, and what would fit."""
    label, style = _VERDICT[prediction.verdict]
    headline = Text.assemble((label, style), f": {verdict_sentence(prediction)}")
    rows: list[RenderableType] = [headline, make_facts(_facts(prediction))]
    distribution = distribution_of(prediction)
    if distribution is not None:
        rows += [Text(""), draw_distribution(distribution)]
    if prediction.tensors:
        rows += [Text(""), _draw_tensors(prediction.tensors)]
    if prediction.notes:
        rows += [Text(""), *(_labelled("note", note, "cyan") for note in prediction.notes)]
    if prediction.suggestions:
        rows += [Text(""), *(_labelled("hint", hint, "green") for hint in prediction.suggestions)]
    return Group(*rows)


def _facts(prediction: Described) -> list[tuple[str, str | Text]]:
    facts: list[tuple[str, str | Text]] = [("program", prediction.program)]
    if prediction.peak_where:
        facts.append(("peak", f"in the {prediction.peak_where}"))
    facts.append(("made of", parts_sentence(prediction.parts)))
    facts.append(("resident", marked(prediction.resident, "predicted")))
    if prediction.budget is not None:
        headroom = marked(prediction.budget.bytes - prediction.peak, "predicted")
        facts.append(("headroom", headroom))
    tensorflow = f"TensorFlow {prediction.tensorflow}, " if prediction.tensorflow else ""
    facts.append(("predicted", f"{tensorflow}in {prediction.elapsed:.1f} s, nothing was run"))
    return facts


def _draw_tensors(tensors: Sequence[LiveTensor]) -> RenderableType:
    table = make_table(
        "live at the peak", "kind", "layer", "op", "line", right=("live at the peak",)
    )
    for tensor in tensors[:TOP_TENSORS]:
        # A size from the graph is a plain int of bytes.
        size = str(Size(tensor.bytes))
        table.add_row(size, tensor.kind, tensor.layer or "", tensor.op, tensor.line or "")
    rest = tensors[TOP_TENSORS:]
    if rest:
        size = Size(sum(int(tensor.bytes) for tensor in rest))
        table.add_row(str(size), "", f"{len(rest)} more", "", "", style="dim")
    return table


def _labelled(label: str, text: str, style: str) -> Text:
    return Text.assemble((f"{label}: ", style), text)
