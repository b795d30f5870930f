"""Selection: which rules are asked, from the command line and from `[tool.snugly.lint]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.errors import UsageError, suggest
from snugly.linting.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snugly.linting.rule import Rule


def select_rules(select: Iterable[str] | None = None, ignore: Iterable[str] = ()) -> list[Rule]:
    """The rules that are selected and not ignored.

    A word is a code (`SNG404`), the beginning of codes (`SNG40`), a rule's name
    (`predict-in-loop`), or `all`.
    """
    chosen = None if select is None else [one for word in select for one in _matching(word)]
    left_out = {rule.code for word in ignore for rule in _matching(word)}
    codes = {rule.code for rule in (all_rules() if chosen is None else chosen)}
    return [rule for rule in all_rules() if rule.code in codes - left_out]


def _matching(word: str) -> list[Rule]:
    wanted = word.strip().lower()
    rules = all_rules()
    if wanted == "all":
        return list(rules)
    found = [
        rule
        for rule in rules
        if rule.name == wanted
        or (wanted.startswith("sng") and rule.code.lower().startswith(wanted))
    ]
    if not found:
        known = [name for rule in rules for name in (rule.code.lower(), rule.name)]
        near = suggest(wanted, known)
        raise UsageError(
            f"no rule is called {word!r}", hint=f"{near} `snugly lint --rules` lists them".strip()
        )
    return found
