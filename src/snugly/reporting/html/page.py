"""Page: everything that is shown, as plain data. Predicted and measured runs share it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.devices import Budget
    from snugly.reporting.html.samples import SampleLines
    from snugly.reporting.html.stacking import Stack
    from snugly.reporting.html.waste import Waste
    from snugly.units import Size

Source: TypeAlias = Literal["predicted", "measured"]

Tone: TypeAlias = Literal["good", "bad", "unsure", "plain"]
"""How the verdict is coloured. The words beside it say the same."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The verdict: a word or two, its colour, the sentence, and where the peak is."""

    label: str
    tone: Tone
    sentence: str
    where: str | None = None  # "backward pass of block5_conv2 (train.py:48)"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Blocks of a very long run that have a part in the line but are not drawn one by one."""

    count: int
    bytes: int  # the most that they came to at one moment
    step: int  # moments for which one value of `most` stands
    most: Sequence[int]  # their bytes at the highest moment of each stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What one page shows. Sizes are bytes, moments are those of the timeline.

    Without a timeline `length` is 0: there is no line and no blocks, only what is live at the peak.
    """

    source: Source
    program: str
    headline: Headline
    peak: Size
    requested: Size
    parts: Mapping[str, Size]
    waste: Waste
    stack: Stack
    length: int = 0
    peak_moment: int = 0
    low: Size | None = None
    high: Size | None = None
    budget: Budget | None = None
    facts: Sequence[tuple[str, str]] = ()
    suggestions: Sequence[str] = ()
    notes: Sequence[str] = ()
    samples: SampleLines | None = None
    left_out: LeftOut | None = field(default=None, repr=False)
