"""Rows, summary and Markdown of the accuracy table. Pure: no TensorFlow, no processes."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

PEERS = ("grappler", "keras", "forum")
STEP_PROTOCOLS = ("on_batch", "call")
BUDGETS = tuple(percent / 100 for percent in range(90, 111, 2))
"""Budgets as shares of the true peak, at which the verdict is judged."""
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Row:
    """One case: what was measured, what was predicted, what others say. Bytes."""

    program: str
    batch: int
    mode: str
    optimizer: str
    onednn: bool
    measured: int  # median over repeats of the step protocol
    peaks: tuple[int, ...]  # of the step protocol, one per repeat
    lowest: int  # over all protocols and repeats
    highest: int
    requested_measured: int
    peak: int | None = None
    low: int | None = None
    high: int | None = None
    requested: int | None = None
    seconds: float | None = None
    error: str = ""
    peers: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """What a set of rows amounts to; shares and relative errors, 0.05 for 5 %."""

    cases: int
    predicted: int
    mean_error: float
    worst_error: float
    requested_error: float
    peers: dict[str, float]
    inside: float  # measured peaks of the step protocol within [low, high]
    inside_all: float  # cases whose every peak, of every protocol, is within [low, high]
    width: float  # median of (high − low) / measured
    right: float  # verdicts: right, uncertain, wrong add up to 1
    uncertain: float
    wrong_fits: int
    budgets: int


def relative(estimate: float, truth: float) -> float:
    return (estimate - truth) / truth


def verdict(low: int, high: int, budget: float) -> str:
    """The verdict that a range gives on a budget."""
    if high <= budget:
        return "fits"
    return "does-not-fit" if low > budget else "uncertain"


def row(
    records: Sequence[dict[str, Any]],
    prediction: dict[str, Any] | None,
    peers: dict[str, Any] | None,
) -> Row:
    """Join the records of one case with what was predicted and what the peers say."""
    steps = [record for record in records if record["protocol"] in STEP_PROTOCOLS]
    peaks = tuple(record["peak"] for record in steps)
    first, said = steps[0], prediction or {}
    return Row(
        program=first["program"],
        batch=first["batch"],
        mode=first["mode"],
        optimizer=first["optimizer"],
        onednn=first["onednn"],
        measured=round(statistics.median(peaks)),
        peaks=peaks,
        lowest=min(record["peak"] for record in records),
        highest=max(record["peak"] for record in records),
        requested_measured=round(statistics.median(record["requested"] for record in steps)),
        peak=said.get("peak"),
        low=said.get("low"),
        high=said.get("high"),
        requested=said.get("requested"),
        seconds=said.get("seconds"),
        error=said.get("error", ""),
        peers={peer: value for peer in PEERS if isinstance(value := (peers or {}).get(peer), int)},
    )


def summarise(rows: Sequence[Row]) -> Summary:
    """Errors over the predicted rows, and over the rows each peer answers."""
    done = [r for r in rows if r.peak is not None and r.low is not None and r.high is not None]
    ranges = [(r.low, r.high, r) for r in done if r.low is not None and r.high is not None]
    errors = [abs(relative(r.peak, r.measured)) for r in done if r.peak is not None]
    asked = [
        abs(relative(r.requested, r.requested_measured)) for r in done if r.requested is not None
    ]
    said = [
        (verdict(low, high, share * r.measured), share >= 1)
        for low, high, r in ranges
        for share in BUDGETS
    ]
    right = sum((v == "fits") == fits for v, fits in said if v != "uncertain")
    return Summary(
        cases=len(rows),
        predicted=len(done),
        mean_error=_mean(errors),
        worst_error=max(errors, default=float("nan")),
        requested_error=_mean(asked),
        peers={
            peer: _mean([abs(relative(r.peers[peer], r.measured)) for r in rows if peer in r.peers])
            for peer in PEERS
        },
        inside=_mean([low <= peak <= high for low, high, r in ranges for peak in r.peaks]),
        inside_all=_mean([low <= r.lowest and r.highest <= high for low, high, r in ranges]),
        width=statistics.median((high - low) / r.measured for low, high, r in ranges)
        if ranges
        else float("nan"),
        right=right / len(said) if said else float("nan"),
        uncertain=_mean([v == "uncertain" for v, _ in said]),
        wrong_fits=sum(v == "fits" and not fits for v, fits in said),
        budgets=len(said),
    )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else float("nan")


GROUPS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("all", lambda _: True),
    ("training", lambda r: r.mode == "train"),
    ("inference", lambda r: r.mode == "infer"),
    ("oneDNN on", lambda r: r.onednn),
    ("oneDNN off", lambda r: not r.onednn),
)


def markdown(rows: Sequence[Row], about: dict[str, Any]) -> str:
    """The page: where it was measured, the summary, then every case."""
    lines = [
        "# Accuracy",
        "",
        "Allocator peaks on the CPU, every allocation through the BFC allocator, each repeat in a",
        "fresh process. Predictions run no training step.",
        "",
        f"Measured {about['date']} with TensorFlow {about['tensorflow']}, Keras {about['keras']},",
        f"{about['cores']} cores ({about['cpu']}), up to {about['repeats']} repeats: three of the",
        "middle batch sizes with oneDNN, on a machine that did little else; of others one, while",
        "it did more. Margins and rates of the predictor were set on these same programs.",
        "",
        *_summary_lines(rows),
        "",
        *_case_lines(rows),
    ]
    return "\n".join(lines) + "\n"


SUMMARY_COLUMNS = (
    *("cases", "predicted", "mean error", "worst", "requested, mean error"),
    *("Grappler", "Keras", "forum formula", "peaks in range", "cases wholly in range"),
    *("median width", "verdict right", "uncertain", "wrong “fits”"),
)
CASE_COLUMNS = (
    *("program", "batch", "mode", "optimizer", "oneDNN", "measured", "spread", "predicted"),
    *("range", "error", "requested", "error", "Grappler", "Keras", "forum"),
)


def _head(columns: Sequence[str], sides: str) -> list[str]:
    rules = ["---" if side == "l" else "--:" for side in sides]
    return ["| " + " | ".join(columns) + " |", "|" + "|".join(rules) + "|"]


def _summary_lines(rows: Sequence[Row]) -> list[str]:
    lines = [
        "## Summary",
        "",
        *_head(SUMMARY_COLUMNS, "l" + "r" * 13),
    ]
    for name, belongs in GROUPS:
        chosen = [r for r in rows if belongs(r)]
        if not chosen:
            continue
        s = summarise(chosen)
        shares = (s.mean_error, s.worst_error, s.requested_error, *s.peers.values())
        rest = (s.inside, s.inside_all, s.width, s.right, s.uncertain)
        cells = [name, f"{s.predicted} of {s.cases}", *map(percent, shares), *map(percent, rest)]
        lines.append("| " + " | ".join([*cells, f"{s.wrong_fits} of {s.budgets}"]) + " |")
    return lines


def _case_lines(rows: Sequence[Row]) -> list[str]:
    lines = [
        "## Cases",
        "",
        "Sizes in MiB. *Measured* is the median over repeats of the highest of five single steps;",
        "*spread* the lowest and highest peak over all repeats, and over `fit` and `predict` too.",
        "",
        *_head(CASE_COLUMNS, "lrlll" + "r" * 10),
    ]
    for r in rows:
        cells = [r.program, str(r.batch), r.mode, r.optimizer, "on" if r.onednn else "off"]
        cells += [size(r.measured), f"{size(r.lowest)}–{size(r.highest)}"]
        if r.peak is None or r.low is None or r.high is None:
            cells += [r.error.split(":")[0] or "–", "–", "–"]
        else:
            cells += [
                size(r.peak),
                f"{size(r.low)}–{size(r.high)}",
                signed(relative(r.peak, r.measured)),
            ]
        cells.append(size(r.requested_measured))
        cells.append(
            "–" if r.requested is None else signed(relative(r.requested, r.requested_measured))
        )
        cells += [signed(relative(r.peers[p], r.measured)) if p in r.peers else "–" for p in PEERS]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def size(value: int) -> str:
    """MiB for a column of its own unit; three significant digits suffice beside the spread."""
    mebibytes = value / MEBIBYTE
    return f"{mebibytes:.2f}" if mebibytes < 10 else f"{mebibytes:.1f}"


def percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.1f} %"


def signed(share: float) -> str:
    return f"{100 * share:+.1f} %"
