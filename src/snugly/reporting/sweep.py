"""A sweep, as data, as a table for spreadsheets, and as a drawing: a line for each cell."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.console import Console, Group
from rich.text import Text

from snugly.reporting.terminal import make_table
from snugly.units import format_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from snugly.devices import Budget
    from snugly.sweeping import Largest, Refusal, Row, Sweep

COLUMNS: Final = (
    *("model", "batch_size", "device", "budget", "peak", "low", "high", "verdict"),
    *("largest_batch_size", "error"),
)
"""Of the table for spreadsheets; sizes in bytes."""

_WIDTH: Final = 160
"""Of the table as text: as wide as into a pipe."""
_VERDICT: Final = {
    "fits": ("fits", "green"),
    "does-not-fit": ("does not fit", "bold red"),
    "uncertain": ("may not fit", "yellow"),
    None: ("", ""),
}
_COUNTED: Final = {
    "fits": "fit",
    "does-not-fit": "do not fit",
    "uncertain": "may not fit",
    None: "predicted",
    "error": "could not be predicted",
}


def sweep_data(sweep: Sweep) -> dict[str, Any]:
    """What `snugly sweep --output-format json` prints; sizes in bytes."""
    return sweep.to_data()


def sweep_csv(sweep: Sweep) -> str:
    """The rows for a spreadsheet; the largest batches beside them, or alone."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    largest = {(each.model, each.budget): each for each in sweep.largest}
    cells: Sequence[Row | Largest] = sweep.rows or sweep.largest
    for cell in cells:
        found = None if cell.budget is None else largest.get((cell.model, cell.budget))
        data = cell.to_data() | {
            "budget": None if cell.budget is None else int(cell.budget.bytes),
            "largest_batch_size": None if found is None else found.batch_size,
            "error": None if cell.error is None else f"{cell.error.code}: {cell.error.message}",
        }
        if cell is found:  # no row of a batch size: what it needs stands beside the largest one
            data["batch_size"] = None
        writer.writerow(data)
    return text.getvalue()


def sweep_text(sweep: Sweep) -> str:
    """The drawing as plain text, as `print` shows it."""
    console = Console(file=io.StringIO(), width=_WIDTH, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(draw_sweep(sweep))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def draw_sweep(sweep: Sweep) -> RenderableType:
    """How many fit, the rows, the largest batches, and what went wrong."""
    parts: list[RenderableType] = []
    if sweep.rows:
        parts += [Text(_headline(sweep), style="bold"), Text(""), _draw_rows(sweep.rows)]
    if sweep.largest:
        parts += [Text("")] if parts else []
        parts.append(_draw_largest(sweep.largest))
    parts += [Text(""), Text(_basis(sweep), style="dim")]
    for row in sweep.rows:
        if row.reason is not None:
            where = f"{row.model} on {_device(row.budget)}"
            parts.append(Text.assemble(("note: ", "cyan"), f"{where}: {row.reason}"))
    return Group(*parts, *_draw_errors(sweep))


def _headline(sweep: Sweep) -> str:
    counts = Counter("error" if row.error else row.verdict for row in sweep.rows)
    told = [f"{counts[key]} {words}" for key, words in _COUNTED.items() if counts[key]]
    cells = "1 cell" if len(sweep.rows) == 1 else f"{len(sweep.rows)} cells"
    return f"{cells}: {', '.join(told)}"


def _draw_rows(rows: Sequence[Row]) -> RenderableType:
    judged = any(row.budget is not None for row in rows)
    told = judged or any(row.error for row in rows)
    # What matters most comes first: a narrow terminal cuts the end of the lines.
    columns = ["batch", *(["device"] if judged else []), *(["verdict"] if told else [])]
    columns += ["needs", "range", *(["offers", ""] if judged else [])]
    hopeless = _hopeless(rows)
    lines: list[_Line] = []
    for before, row in zip((None, *rows), rows, strict=False):
        is_first = before is None or before.model != row.model
        if row.model in hopeless and not is_first:
            continue
        is_first |= before is not None and before.batch_size != row.batch_size
        whole = row.model not in hopeless
        device, *offers = _offers(row.budget if whole else None) if judged else [""]
        cells = [_batch(row.batch_size) if is_first and whole else ""]
        cells += [*([device] if judged else []), *([_verdict(row)] if told else [])]
        lines.append(_Line(row.model, [*cells, *_needs(row), *offers]))
    return _draw_by_model(columns, ("batch", "offers", "needs", "range"), lines)


def _draw_largest(largest: Sequence[Largest]) -> RenderableType:
    columns = ("device", "largest batch", "needs at most", "offers", "")
    lines: list[_Line] = []
    for each in largest:
        found: list[str | Text]
        if each.error is not None:
            found = [Text(each.error.code, style="bold red"), ""]
        else:
            found = [f"{each.batch_size:,}", str(each.high)]
        device, *offers = _offers(each.budget)
        lines.append(_Line(each.model, [device, *found, *offers]))
    return _draw_by_model(columns, ("offers", "largest batch", "needs at most"), lines)


@dataclass(frozen=True, slots=True)
class _Line:
    model: str
    cells: Sequence[str | Text]


def _draw_by_model(
    columns: Sequence[str], right: Sequence[str], lines: Sequence[_Line]
) -> RenderableType:
    """One table, each model's name above its lines: a path would leave no room beside them."""
    parts: list[RenderableType] = [_aligned(columns, right, lines)]
    for name, own in groupby(lines, key=attrgetter("model")):
        table = _aligned(columns, right, lines)
        table.show_header = False
        for line in own:
            table.add_row(*line.cells)
        parts += [Text(name, style="bold", overflow="fold"), table]
    return Group(*parts)


def _aligned(columns: Sequence[str], right: Sequence[str], lines: Sequence[_Line]) -> Table:
    """A table that is as wide as all lines together need."""
    table = make_table(*columns, right=right)
    for place, (title, column) in enumerate(zip(columns, table.columns, strict=True)):
        widths = [cell_len(str(line.cells[place])) for line in lines]
        column.min_width = max(cell_len(title), *widths)
    return table


def _hopeless(rows: Sequence[Row]) -> set[str]:
    """Models that have one and the same error whatever the batch and device: a line is enough."""
    outcomes: dict[str, set[Refusal | None]] = {}
    for row in rows:
        outcomes.setdefault(row.model, set()).add(row.error)
    return {name for name, errors in outcomes.items() if None not in errors and len(errors) == 1}


def _draw_errors(sweep: Sweep) -> list[RenderableType]:
    """Each thing that went wrong, once, with the models it went wrong with."""
    models: dict[Refusal, list[str]] = {}
    for cell in (*sweep.rows, *sweep.largest):
        if cell.error is not None:
            models.setdefault(cell.error, []).append(cell.model)
    drawn: list[RenderableType] = []
    for error, names in models.items():
        label = (f"error[{error.code}]", "bold red")
        drawn.append(Text.assemble("\n", label, f": {_told(error, names)}"))
        drawn.append(Text.assemble(("hint: ", "green"), error.hint))
    return drawn


def _told(error: Refusal, names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    if len(distinct) == 1 and distinct[0] in error.message:
        return error.message
    return f"{', '.join(distinct)}: {error.message}"


def _basis(sweep: Sweep) -> str:
    step = "training step" if sweep.training else "inference step"
    spent = f"{sweep.predictions} predictions in {sweep.elapsed:.1f} s by {sweep.engine}"
    return f"needs: the peak of one {step}, predicted, with its range; nothing was run\n{spent}"


def _offers(budget: Budget | None) -> list[str | Text]:
    if budget is None:
        return ["", "", ""]
    return [_device(budget), str(budget.bytes), Text(budget.provenance, style="dim")]


def _device(budget: Budget | None) -> str:
    return "" if budget is None else budget.device or "stated"


def _needs(row: Row) -> list[str | Text]:
    found = row.found
    if found is None:
        return ["", ""]
    if found.arena is not None:
        return [str(found.arena), Text("whole arena", style="dim")]
    spread = "exactly" if found.low == found.high else format_range(found.low, found.high)
    return [str(found.peak), spread]


def _verdict(row: Row) -> Text:
    if row.error is not None:
        return Text(row.error.code, style="bold red")
    return Text(*_VERDICT[row.verdict])


def _batch(size: int | None) -> str:
    return "its own" if size is None else f"{size:,}"
