"""A pipeline.config, predicted or made smaller, as data and as a drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from snugly.reporting.terminal import make_facts, make_table, marked
from snugly.training.detection import detection_data, shrunk_data

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snugly.training.detection import DetectionPrediction, ShrunkConfig

_STYLE = {
    "fits": ("fits", "bold green"),
    "does-not-fit": ("error[SNG101]", "bold red"),
    "uncertain": ("warning[SNG102]", "bold yellow"),
    None: ("predicted", "bold"),
}


def config_data(prediction: DetectionPrediction) -> dict[str, Any]:
    """The contract's keys for the device, and what the file's own prediction says besides.

    What is not known of the device is null: tensors have no names before the API has built its
    graph.
    """
    device = prediction.device
    parts = {}
    if device is not None:
        parts = {part.name: int(part.bytes) for part in device.heads}
        parts[device.backbone] = int(device.backbone_bytes)
    return {
        "peak": None if device is None else int(device.peak),
        "low": None if device is None else int(device.low),
        "high": None if device is None else int(device.high),
        "requested": None,
        "resident": None,
        "parts": parts,
        "tensors": [],
        "training": True,
        **detection_data(prediction),
    }


def draw_config(prediction: DetectionPrediction) -> RenderableType:
    """The verdict, what the device and the host hold, and the settings behind the host's parts."""
    label, style = _STYLE[prediction.verdict]
    rows: list[RenderableType] = [
        Text.assemble((label, style), f": {_sentence(prediction)}"),
        make_facts(_facts(prediction)),
        Text(""),
        _parts(prediction),
    ]
    if prediction.notes:
        rows += [Text(""), *(Text.assemble(("note: ", "cyan"), one) for one in prediction.notes)]
    return Group(*rows)


def _sentence(prediction: DetectionPrediction) -> str:
    device = prediction.device
    text = "one training step needs "
    if device is None:
        text += "an unknown amount"
    else:
        text += f"{device.peak} (predicted, {device.low} to {device.high})"
    text += f" on the device, the input pipeline {prediction.host} on the host"
    given = [
        f"{name} offers {size}"
        for name, size in (("device", prediction.memory), ("host", prediction.host_memory))
        if size is not None
    ]
    return "; ".join([text, *given])


def _facts(prediction: DetectionPrediction) -> list[tuple[str, str | Text]]:
    size, device = prediction.input_size, prediction.device
    facts: list[tuple[str, str | Text]] = [
        ("program", prediction.path),
        ("model", f"{prediction.kind}, {prediction.extractor}"),
        ("input", f"{prediction.batch_size} × {size.height} × {size.width}"),
    ]
    if device is not None:
        facts.append((device.backbone, marked(device.backbone_bytes, "predicted")))
        facts += [(head.name, marked(head.bytes, "assumed")) for head in device.heads]
    return [*facts, ("host", marked(prediction.host, "assumed"))]


def _parts(prediction: DetectionPrediction) -> RenderableType:
    table = make_table("host", "what", "setting", "", right=("host",))
    for part in sorted(prediction.host_parts, key=lambda one: -one.bytes):
        table.add_row(str(part.bytes), part.name, ".".join(part.path), part.provenance)
    return table


def shrunk_config_data(shrunk: ShrunkConfig, written: str | None = None) -> dict[str, Any]:
    """What `snugly shrink --output-format json` prints of a pipeline.config."""
    return {**shrunk_data(shrunk), "verdict": shrunk.after.verdict, "written": written}


def draw_shrunk_config(shrunk: ShrunkConfig) -> RenderableType:
    """The verdict, each change with its safety, and the change as a diff."""
    label, style = _STYLE[shrunk.after.verdict]
    table = make_table("saves", "setting", "from", "to", "where", "safety", "", right=("saves",))
    for one in shrunk.changes:
        table.add_row(
            str(one.saves),
            one.setting,
            str(one.before),
            str(one.after),
            one.where,
            one.safety,
            one.reason,
        )
    rows: list[RenderableType] = [
        Text.assemble((label, style), f": {_sentence(shrunk.after)}"),
        make_facts([("before", _sentence(shrunk.before))]),
        Text(""),
        table if shrunk.changes else Text("nothing was changed"),
    ]
    if shrunk.diff:
        rows += [Text(""), Text(shrunk.diff)]
    if not shrunk.fits and shrunk.refused is not None:
        hint = f"`--allow {shrunk.refused}` permits more: batch size, image size, shuffle buffer"
        rows += [Text(""), Text.assemble(("hint: ", "cyan"), hint)]
    return Group(*rows)
