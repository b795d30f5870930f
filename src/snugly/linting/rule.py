"""Rule and Alarm: what a file under `rules/` consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator

    from snugly.findings import Severity
    from snugly.linting.program import Program


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that cannot alter what the program computes."""

    what: str
    """One sentence for a person: `remove persistent=True`."""
    action: str
    """Which change `fixing` makes at the alarm's place."""
    replacement: str = ""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One place where a rule applies."""

    node: ast.AST
    message: str
    fix: Fix | None = None
    evidence: tuple[str, ...] = ()
    severity: Severity | None = None
    """Where it differs from the rule's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing to look for, with examples that are its tests and its documentation."""

    code: str
    name: str
    severity: Severity
    check: Callable[[Program], Iterator[Alarm]]
    bad: tuple[str, ...]
    good: tuple[str, ...]
    is_memory: bool = True
    needs_tensorflow: bool = True
    """Whether the rule is asked only in files that use TensorFlow or Keras."""
    in_tests: bool = False
    """Whether it counts in unit tests too: what fails there as well, or could never fit."""
