"""The catalogue: every entry is recognised by its own sample, has a source, and is safe to run."""

import json
import re
from pathlib import Path

import pytest

from snugly.codes import REGISTRY
from snugly.explaining import evidence, exit_codes, lines, numbers
from snugly.explaining.catalogue import FAMILIES, catalogue, parse_entries
from snugly.explaining.explain import explain

CAUSES = [code for code in REGISTRY if code.startswith("SNG7")]
SAMPLES = [(entry, sample) for entry in catalogue() for sample in entry.samples]


@pytest.mark.parametrize(
    ("entry", "sample"), SAMPLES, ids=lambda value: value[:60] if isinstance(value, str) else ""
)
def test_a_sample_gives_its_own_code_first(entry, sample):
    first = explain(sample)[0]
    assert (first.code, first.is_memory) == (entry.code, entry.is_memory)


def test_every_cause_has_an_entry_or_is_derived_from_clues():
    derived = {"SNG799"}  # an exception that nobody knows
    assert {entry.code for entry in catalogue()} | derived >= set(CAUSES)


def test_there_are_enough_kinds_and_enough_that_are_not_memory():
    kinds = {entry.code for entry in catalogue()}
    assert len(kinds) >= 60
    assert len({entry.code for entry in catalogue() if not entry.is_memory}) >= 16


def test_every_family_has_entries():
    assert {entry.family for entry in catalogue()} == set(FAMILIES)


def test_what_an_entry_explains_exists():
    for entry in catalogue():
        assert entry.explains <= REGISTRY.keys(), entry.code
        assert entry.code not in entry.explains


def parts_of(operation, argument):
    """The patterns inside of one element of a parsed pattern."""
    constants = re._constants
    if operation in (constants.MAX_REPEAT, constants.MIN_REPEAT):
        return [argument[2]]
    if operation is constants.SUBPATTERN:
        return [argument[3]]
    if operation in (constants.ASSERT, constants.ASSERT_NOT):
        return [argument[1]]
    return argument[1] if operation is constants.BRANCH else []


def bounded(tree):
    """Whether every repetition in a parsed pattern has an upper limit."""
    constants = re._constants
    for operation, argument in tree:
        repeats = operation in (constants.MAX_REPEAT, constants.MIN_REPEAT)
        if repeats and argument[1] == constants.MAXREPEAT:
            return False
        if not all(bounded(part) for part in parts_of(operation, argument)):
            return False
    return True


def all_patterns():
    for entry in catalogue():
        yield from (pattern.regex for pattern in entry.patterns if pattern.regex is not None)
    for module in (lines, numbers, exit_codes, evidence):
        for value in vars(module).values():
            values = value.values() if isinstance(value, dict) else value
            group = values if isinstance(value, (dict, tuple)) else (value,)
            yield from (one for one in group if isinstance(one, re.Pattern))


def test_no_pattern_repeats_without_limit():
    # GIVEN patterns that run over text of strangers THEN none can run for long
    patterns = list(all_patterns())
    assert len(patterns) > 150
    for pattern in patterns:
        assert bounded(re._parser.parse(pattern.pattern)), pattern.pattern


def test_the_test_above_can_fail():
    for pattern in ("a*", "(a+)b", "x|y+", "(?:a{2,})?"):
        assert not bounded(re._parser.parse(pattern)), pattern
    assert bounded(re._parser.parse("(?:a{1,9}|b?)c"))


def test_hostile_lines_are_looked_at_like_any_other():
    # GIVEN lines made of pieces of messages, over and over, as long as a line may be
    pieces = [text for entry in catalogue() for text in (p.text for p in entry.patterns)][::7]
    log = "\n".join((piece + " ") * (8000 // (len(piece) + 1)) for piece in pieces)
    assert len(explain(log)) > 0


GOOD = """
[[entry]]
code = "SNG701"
memory = true
role = "cause"
weight = 1
confidence = 0.5
texts = ["x"]
source = "s"
sample = "x"
"""


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('code = "SNG701"', 'code = "SNG000"', "no such code"),
        ('source = "s"', "", "needs a source"),
        ('sample = "x"', "", "needs a source and a sample"),
        ('role = "cause"', 'role = "culprit"', "role must be one of"),
        ('texts = ["x"]', "", "nothing to look for"),
        ('texts = ["x"]', 'text = ["x"]', "unknown keys"),
    ],
)
def test_a_careless_entry_is_refused(old, new, complaint):
    assert len(parse_entries(GOOD, "memory")) == 1
    with pytest.raises(ValueError, match=complaint):
        parse_entries(GOOD.replace(old, new), "memory")


FACTS = Path(__file__).parents[3] / "shared/facts/error-messages.json"
MEMORY = {"oom-device": True, "oom-host": True, "not-memory": False, "hardware": False}


def test_the_collected_messages_are_told_apart():
    if not FACTS.exists():
        pytest.skip("needs shared data: facts/error-messages.json")
    entries = json.loads(FACTS.read_text())["entries"]
    for entry in entries:
        expected = MEMORY.get(entry["memory_class"])
        if expected is not None:
            findings = explain(entry["sample"])
            assert findings, entry["id"]
            assert findings[0].is_memory is expected, entry["id"]
