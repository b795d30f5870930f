"""A page as JSON: columns instead of rows, names once each, so that 100,000 blocks stay small.

The keys are read by `assets/data.js`. Sizes are bytes.
"""

from __future__ import annotations

import json
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, Final

from snugly.reporting.html.contents import left_out_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from snugly.reporting.html.page import Page
    from snugly.reporting.html.samples import SampleLines
    from snugly.reporting.html.stacking import Stack

LONGEST_NAME: Final = 600
"""Longer names are cut in their middle; a hostile one could be of any length."""

MOST_TEXTS: Final = 200
"""Notes and suggestions that are shown."""

# JSON inside a script element: a name must not be able to end the element or begin a comment.
# Everything that is not ASCII, U+2028 and lone surrogates among it, json.dumps escapes itself.
_ESCAPES: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def to_script(page: Page) -> str:
    """The page's data as JSON that may stand inside `<script type="application/json">`."""
    text = json.dumps(page_data(page), separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def page_data(page: Page) -> dict[str, Any]:
    """The page as plain data."""
    budget, left_out, notes = page.budget, page.left_out, list(page.notes)
    if left_out is not None:
        notes.append(left_out_note(left_out))
    return {
        "source": page.source,
        "program": shortened(page.program),
        "headline": {
            "label": page.headline.label,
            "tone": page.headline.tone,
            "sentence": shortened(page.headline.sentence, 4 * LONGEST_NAME),
            "where": shortened(page.headline.where or "", 2 * LONGEST_NAME),
        },
        "peak": int(page.peak),
        "low": None if page.low is None else int(page.low),
        "high": None if page.high is None else int(page.high),
        "requested": int(page.requested),
        "budget": None
        if budget is None
        else {**budget.to_data(), "description": shortened(budget.description)},
        "parts": [[str(kind), int(size)] for kind, size in page.parts.items()],
        "waste": {
            "rounding": None if page.waste.rounding is None else int(page.waste.rounding),
            "mark": page.waste.rounding_mark,
            "gaps": None if page.waste.gaps is None else int(page.waste.gaps),
            "why": list(page.waste.why),
        },
        "facts": [[shortened(name), shortened(value)] for name, value in page.facts],
        "suggestions": _texts(page.suggestions),
        "notes": _texts(notes),
        "length": page.length,
        "peakMoment": page.peak_moment,
        "leftOut": None
        if left_out is None
        else {"step": left_out.step, "most": list(left_out.most)},
        "blocks": _blocks(page.stack, page.length),
        "samples": None if page.samples is None else _samples(page.samples),
    }


def shortened(text: str, longest: int = LONGEST_NAME) -> str:
    """A name that is no longer than it may be: its beginning and its end."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[-half:]}"


def _texts(texts: Sequence[str]) -> list[str]:
    return [shortened(text, 4 * LONGEST_NAME) for text in texts[:MOST_TEXTS]]


def _blocks(stack: Stack, length: int) -> dict[str, Any]:
    spans = stack.spans
    births = [span.birth for span in spans]
    operations, operation = _table(span.operation for span in spans)
    layers, layer = _table(span.origin.layer or "" for span in spans)
    lines, line = _table(span.origin.line or "" for span in spans)
    kinds, kind = _table(str(span.kind) for span in spans)
    sizes = sorted({size for span in spans for size in (span.bytes, span.allocated)})
    index = {size: position for position, size in enumerate(sizes)}
    return {
        "residents": stack.residents,
        "larges": stack.larges,
        "residentTop": stack.resident_top,
        "bandTop": stack.band_top,
        "height": stack.height,
        "kinds": kinds,
        "operations": _front_coded(operations),
        "layers": _front_coded(layers),
        "lines": _front_coded(lines),
        "sizes": sizes,
        "kind": kind,
        "operation": operation,
        "layer": layer,
        "line": line,
        "bytes": [index[span.bytes] for span in spans],
        "chunk": [index[span.allocated] for span in spans]
        if any(span.allocated for span in spans)
        else None,
        "birth": _differences(births),
        # 0 for what stays to the end.
        "life": [0 if span.death >= length else span.death - span.birth for span in spans],
        "offset": _differences(stack.offsets),
    }


def _table(names: Iterable[str]) -> tuple[list[str], list[int]]:
    """Names once each, sorted, so that their indices sort as they do; and the indices."""
    cut = [shortened(name) for name in names]
    table = sorted(set(cut), key=lambda name: (name.casefold(), name))
    index = {name: position for position, name in enumerate(table)}
    return table, [index[name] for name in cut]


def _front_coded(names: Sequence[str]) -> list[Any]:
    """Sorted names, each as how much it shares with the one before, and the rest of it.

    Counted in characters of Python; the page counts in those of JavaScript, so what is shared ends
    before the first that the two count differently.
    """
    coded: list[Any] = []
    before = ""
    for name in names:
        shared = commonprefix([before, name])  # noqa: RUF071 - characters, not folders, are meant
        if not shared.isascii():
            shared = ""
        coded += [len(shared), name[len(shared) :]]
        before = name
    return coded


def _differences(numbers: Sequence[int]) -> list[int]:
    return (
        [after - before for before, after in zip((0, *numbers[:-1]), numbers, strict=True)]
        if numbers
        else []
    )


def _samples(samples: SampleLines) -> dict[str, Any]:
    rest = samples.rest
    return {
        "seconds": list(samples.seconds),
        "lines": [{"name": name, "values": list(values)} for name, values in samples.lines],
        "windows": [list(window) for window in samples.windows],
        "rest": None if rest is None else rest.to_data(),
        "every": samples.every,
    }
