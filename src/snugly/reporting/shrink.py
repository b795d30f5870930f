"""A smaller `.tflite`, as data and as a drawing: whether it fits, and what each step saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.text import Text

from snugly.codes import REGISTRY
from snugly.reporting.prediction import prediction_data
from snugly.reporting.terminal import make_facts, make_table, marked
from snugly.units import Size

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snugly.lite import LiteShrunk
    from snugly.predicting.lite import LitePrediction

LARGEST: Final = 4
"""How many of the tensors at the peak are named where nothing fits."""

LONGEST: Final = 400
"""Characters of a name or note that are shown."""


def shrink_data(shrunk: LiteShrunk, written: str | None = None) -> dict[str, Any]:
    """What `snugly shrink --output-format json` prints of a `.tflite`; sizes in bytes."""
    return {
        "program": shrunk.before.program,
        "runtime": shrunk.before.runtime,
        "fits": shrunk.fits,
        "verdict": shrunk.after.verdict,
        "code": code_of(shrunk),
        "changed": shrunk.changed,
        "written": written,
        "before": _lite_data(shrunk.before),
        "after": _lite_data(shrunk.after),
        "steps": [
            {
                "name": step.name,
                "saved": int(step.saved),
                "safety": step.safety,
                "applied": step.applied,
                "note": step.note,
                "provenance": "predicted",
            }
            for step in shrunk.steps
        ],
        "notes": list(shrunk.notes),
    }


def _lite_data(prediction: LitePrediction) -> dict[str, Any]:
    return {
        **prediction_data(prediction),
        "arena": int(prediction.arena),
        "flash": int(prediction.flash),
    }


def code_of(shrunk: LiteShrunk) -> str | None:
    """The code of what went wrong, if anything."""
    return {"does-not-fit": "SNG566", "uncertain": "SNG102"}.get(shrunk.after.verdict or "")


def draw_shrink(shrunk: LiteShrunk) -> RenderableType:
    """The verdict in a sentence, before and after, the steps, and what to do."""
    before, after = shrunk.before, shrunk.after
    facts: list[tuple[str, str | Text]] = [
        ("program", _plain(before.program)),
        ("before", marked(_need(before), "predicted")),
        ("after", marked(_need(after), "predicted")),
    ]
    if after.verdict == "does-not-fit":
        largest = [
            f"{_plain(one.layer or one.op)} {_exact(one.bytes)}" for one in after.tensors[:LARGEST]
        ]
        facts.append(("at the peak", " · ".join(largest)))
    rows: list[RenderableType] = [_headline(shrunk), make_facts(facts), Text(""), _steps(shrunk)]
    notes = [*shrunk.notes, *after.notes]
    if notes:
        rows += [Text(""), *(Text.assemble(("note: ", "cyan"), _plain(note)) for note in notes)]
    code = code_of(shrunk)
    if code is not None:
        rows += [Text(""), Text.assemble(("hint: ", "green"), REGISTRY[code].remedy)]
    return Group(*rows)


def _headline(shrunk: LiteShrunk) -> Text:
    after = shrunk.after
    need, was = _amount(after), _amount(shrunk.before)
    sentence = f"{need} predicted, {was} before"
    if after.budget is not None:
        budget = after.budget
        sentence += f"; {budget.description} offers {_exact(budget.bytes)} ({budget.provenance})"
    match after.verdict:
        case "fits":
            label, style = "fits", "bold green"
        case "does-not-fit":
            label, style = "error[SNG566]", "bold red"
            sentence = f"the least that was found is {sentence}"
            if after.flash_offered is not None and after.flash > after.flash_offered:
                flash = f"{_exact(after.flash)} do not fit the {_exact(after.flash_offered)}"
                sentence = f"the file's {flash} of flash; {sentence}"
        case "uncertain":
            label, style = "warning[SNG102]", "bold yellow"
        case _:
            label, style = "shrunk" if shrunk.changed else "unchanged", "bold"
    return Text.assemble((label, style), f": {sentence}")


def _amount(prediction: LitePrediction) -> str:
    if prediction.runtime == "micro":
        return f"an arena of {_exact(prediction.arena)}"
    return _exact(prediction.peak)


def _need(prediction: LitePrediction) -> str:
    if prediction.runtime != "micro":
        return _exact(prediction.peak)
    parts = " · ".join(f"{name} {int(size):,}" for name, size in prediction.parts.items())
    return f"arena {int(prediction.arena):,} B: {parts}"


def _steps(shrunk: LiteShrunk) -> RenderableType:
    table = make_table("saves", "step", "safety", "how", right=("saves",), wrapped=("how",))
    for step in shrunk.steps:
        saved = f"{int(step.saved):,} B" if step.applied else "–"
        table.add_row(saved, step.name, step.safety, _plain(step.note))
    return table


def _plain(text: str) -> str:
    """Names come from the file: nothing in them may steer the terminal, or fill it."""
    shown = "".join(one if one.isprintable() else "�" for one in text[:LONGEST])
    return shown if len(text) <= LONGEST else f"{shown}…"


def _exact(count: int) -> str:
    """Bytes to the last one, since that is what an arena is declared with."""
    size = Size(count)
    return f"{size:,} B" if str(size).endswith(" B") else f"{size:,} B ({size})"
