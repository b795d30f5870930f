"""A picture of a record as a fragment of HTML: no scripts, nothing loaded, every name escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from snugly.reporting.prediction import parts_sentence
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snugly.integrations.picture import Curve, Picture

_WIDTH, _HEIGHT, _LEFT, _BAR = 700, 150, 74, 14
# As in the pages of `snugly report --html`, on light ground and on dark.
_COLOURS: Final = {
    "activation": ("#1f9f86", "#5ae6cc"),
    "gradient": ("#bb3e21", "#d94f34"),
    "weight": ("#434acf", "#8ba5fb"),
    "optimizer": ("#083c55", "#3876a0"),
    "workspace": ("#875282", "#e97f90"),
    "input": ("#cc7a12", "#f0d864"),
    "output": ("#ab70e2", "#9b40f0"),
}
_OTHER: Final = ("#6a7484", "#929dad")
# Notebooks say by an attribute whether they are dark; `light-dark()` would follow the system.
_DARK: Final = "[data-jp-theme-light=false] .snugly,[theme=dark] .snugly,.vscode-dark .snugly"


def draw_html(picture: Picture) -> str:
    """The picture, to be put into a notebook's page."""
    pieces = [f'<p class="s-head">{escape(picture.headline)}</p>']
    if picture.curve is not None:
        pieces.append(_draw_curve(picture.curve))
    if picture.parts:
        pieces.append(_draw_parts(picture.parts))
    if picture.rows:
        pieces.append(_draw_rows(picture))
    pieces += [f'<p class="s-note">note: {escape(note)}</p>' for note in picture.notes]
    return f'<div class="snugly"><style>{_style()}</style>{"".join(pieces)}</div>'


def _style() -> str:
    light = "".join(f".snugly .s-{kind}{{fill:{day}}}" for kind, (day, _) in _COLOURS.items())
    dark = "".join(
        f"{where} .s-{kind}{{fill:{night}}}"
        for where in _DARK.split(",")
        for kind, (_, night) in _COLOURS.items()
    )
    return (
        ".snugly{max-width:760px;font:13px/1.5 system-ui,sans-serif;color:inherit}"
        ".snugly svg{display:block;max-width:100%;height:auto;color:inherit}"
        ".snugly text{fill:currentColor;font:11px system-ui,sans-serif}"
        ".snugly p{margin:2px 0}.snugly .s-head{font-weight:650;font-size:14px}"
        ".snugly .s-note{opacity:.75}"
        ".snugly .s-swatch{display:inline-block;margin:0 5px 0 0}"
        ".snugly .s-part{white-space:nowrap;margin-right:10px}"
        ".snugly table{border-collapse:collapse;margin:6px 0}"
        ".snugly th,.snugly td{padding:1px 14px 1px 0;text-align:left;font-size:12px}"
        ".snugly td{white-space:nowrap}"
        ".snugly td:first-child,.snugly th:first-child{text-align:right}"
        ".snugly td:nth-child(4){white-space:normal;overflow-wrap:anywhere}"
        f".snugly .s-other{{fill:{_OTHER[0]}}}{light}{dark}"
    )


def _draw_curve(curve: Curve) -> str:
    highest = max(*curve.bytes, 1)
    across = (_WIDTH - _LEFT) / len(curve.bytes)
    points = [
        (_LEFT + index * across, _HEIGHT - 18 - (_HEIGHT - 36) * size / highest)
        for index, size in enumerate(curve.bytes)
    ]
    # Steps, not slopes: between two events nothing changes.
    path = "".join(f"L{x:.1f} {y:.1f}h{across:.2f}" for x, y in points)
    floor = _HEIGHT - 18
    top = int(np.argmax(curve.bytes))
    x, y = points[top][0] + across / 2, points[top][1]
    label = f"{Size(highest)} {curve.of}"
    title = f"{label} at the highest, over {curve.over}"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img"'
        f' aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f'<path class="s-activation" fill-opacity=".35" d="M{_LEFT} {floor}{path}V{floor}Z"/>'
        f'<path fill="none" stroke="currentColor" stroke-width="1.2"'
        f' d="M{_LEFT} {points[0][1]:.1f}{path}"/>'
        f'<path stroke="currentColor" stroke-opacity=".4" d="M{_LEFT} {floor}H{_WIDTH}"/>'
        f'<path stroke="currentColor" stroke-dasharray="3 3" d="M{x:.1f} {y:.1f}V{floor}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="currentColor"/>'
        f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{Size(highest)}</text>'
        f'<text x="{_LEFT - 6}" y="{floor}" text-anchor="end">0</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 4}">{escape(curve.of)} (measured),'
        f" over {escape(curve.over)}</text></svg>"
    )


def _draw_parts(parts: Mapping[str, Size]) -> str:
    whole = max(1, sum(parts.values()))
    drawn: list[str] = []
    x = float(_LEFT)
    for kind, size in parts.items():
        width = (_WIDTH - _LEFT) * size / whole
        drawn.append(
            f'<rect class="s-{_style_of(kind)}" x="{x:.1f}" width="{width:.1f}" height="{_BAR}">'
            f"<title>{escape(kind)} {size}</title></rect>"
        )
        x += width
    sentence = escape(parts_sentence(parts))
    legend = " ".join(
        f'<span class="s-part">{_swatch(kind)}{escape(kind)} {size}</span>'
        for kind, size in parts.items()
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_BAR}" width="{_WIDTH}" role="img"'
        f' aria-label="{sentence}">{"".join(drawn)}</svg>'
        f"<p>made of (measured): {legend}</p>"
    )


def _swatch(kind: str) -> str:
    return (
        '<svg class="s-swatch" viewBox="0 0 9 9" width="9" height="9">'
        f'<rect class="s-{_style_of(kind)}" width="9" height="9"/></svg>'
    )


def _style_of(kind: str) -> str:
    return kind if kind in _COLOURS else "other"


def _draw_rows(picture: Picture) -> str:
    rows = [
        f"<tr><td>{row.size}</td><td>{_swatch(row.kind)}{escape(row.kind)}</td>"
        f"<td>{escape(row.layer)}</td><td>{escape(row.op)}</td><td>{escape(row.line)}</td></tr>"
        for row in picture.rows
    ]
    if picture.more:
        rows.append(f"<tr><td>{picture.more_size}</td><td></td><td>{picture.more} more</td></tr>")
    heads = ("live at the peak", "kind", "layer", "op", "line")
    head = "".join(f"<th>{name}</th>" for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
