"""How a guarded command ended, as data and as one paragraph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from snugly.reporting.terminal import make_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from snugly.findings import Finding
    from snugly.guarding import Outcome, Story

SCHEMA_VERSION = 1


def outcome_data(
    outcome: Outcome, story: Story | None, findings: Sequence[Finding]
) -> dict[str, Any]:
    """What `snugly run --report` writes."""
    return {
        "schema_version": SCHEMA_VERSION,
        **outcome.to_data(),
        "story": None if story is None else story.to_data(),
        "findings": [finding.to_data() for finding in findings],
    }


def draw_story(story: Story) -> RenderableType:
    """What happened, how sure, where, and what to change."""
    mark = Text(f"snugly[{story.code}]" if story.code else "snugly", style="bold")
    facts: list[tuple[str, str | Text]] = [
        (name, value)
        for name, value in (
            ("how sure", story.sure),
            ("line", story.line),
            ("tensor", story.tensor),
            ("why", story.why),
        )
        if value is not None
    ]
    facts += [("note", note) for note in story.notes]
    parts: list[RenderableType] = [Text.assemble(mark, f": {story.happened}")]
    if facts:
        parts.append(make_facts(facts))
    if story.hint is not None:
        parts.append(Text(f"\nhint: {story.hint}"))
    return Group(*parts)
