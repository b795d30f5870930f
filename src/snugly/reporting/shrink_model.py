"""A model that trains in less, as data and as a drawing: what was done, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from snugly.reporting.prediction import prediction_data
from snugly.reporting.terminal import make_facts, make_table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snugly.training.shrunk import Shrunk


def shrunk_model_data(shrunk: Shrunk) -> dict[str, Any]:
    """What `snugly shrink --output-format json` prints of a model; sizes in bytes."""
    return {
        "program": shrunk.plan.before.program,
        "fits": True,
        "verdict": shrunk.prediction.verdict,
        "batch_size": shrunk.batch_size,
        "before": prediction_data(shrunk.plan.before),
        "after": prediction_data(shrunk.prediction),
        "steps": [
            {
                "name": change.name,
                "saved": int(change.saved),
                "safety": change.safety,
                "extra_time": change.extra_time,
                "note": change.note,
                "provenance": "predicted",
            }
            for change in shrunk.plan.changes
        ],
        "notes": list(shrunk.plan.left_out),
    }


def draw_shrunk_model(shrunk: Shrunk) -> RenderableType:
    """Before and after, the changes, and how to have them in a script."""
    before, after = shrunk.plan.before, shrunk.prediction
    facts = [
        ("as it is", f"{before.peak} (predicted, {before.low} to {before.high})"),
        ("then", f"{after.peak} (predicted, {after.low} to {after.high})"),
        ("batch size", str(shrunk.batch_size)),
    ]
    parts: list[RenderableType] = [make_facts(facts)]
    if shrunk.plan.changes:
        columns = ("change", "saves", "time", "safety", "what it does")
        table = make_table(*columns, wrapped=columns[-1:])
        for change in shrunk.plan.changes:
            time = f"{change.extra_time:+.0%}" if change.extra_time else ""
            cells = (change.name, str(change.saved), time, change.safety, change.note)
            table.add_row(*(Text(cell) for cell in cells))
        parts.append(table)
    else:
        parts.append(Text("it fits as it is"))
    parts += [Text(f"not: {reason}", style="dim") for reason in shrunk.plan.left_out]
    parts.append(Text("in the script: model = snugly.shrink(model, memory=…, batch_size=…).model"))
    return Group(*parts)
