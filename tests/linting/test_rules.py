"""Every rule finds its bad examples and is silent about its good ones; so are all the others."""

import json
import re
from pathlib import Path

import pytest

from snugly.codes import REGISTRY
from snugly.linting.lint import lint_text
from snugly.linting.rules import all_rules

PRELUDE = "import tensorflow as tf\nimport numpy as np\nfrom tensorflow import keras\n"
COLLECTION = Path(__file__).parents[3] / "shared/facts/lint-rules.json"
RULES = all_rules()


def complete(example: str) -> str:
    return example if "import tensorflow as tf\n" in example else PRELUDE + example


def examples(which):
    return [
        pytest.param(rule, text, id=f"{rule.code}-{place}")
        for rule in RULES
        for place, text in enumerate(getattr(rule, which))
    ]


@pytest.mark.parametrize(("rule", "text"), examples("bad"))
def test_a_bad_example_is_found(rule, text):
    assert rule.code in {finding.code for finding in lint_text(complete(text))}


@pytest.mark.parametrize(("rule", "text"), examples("good"))
def test_a_good_example_is_left_alone_by_all_rules(rule, text):
    found = lint_text(complete(text))
    assert [(one.code, one.line, one.message) for one in found] == [], rule.code


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_is_registered_named_and_has_enough_examples(rule):
    assert rule.code in REGISTRY
    assert re.fullmatch(r"[a-z0-9-]+", rule.name)
    assert len(rule.bad) >= 4
    assert len(rule.good) >= 4


def test_codes_and_names_are_unique():
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.skipif(not COLLECTION.is_file(), reason="needs shared data: lint-rules.json")
def test_all_pairs_of_the_collection_are_separated():
    # GIVEN the bad and good snippets that the rules began with
    entries = json.loads(COLLECTION.read_text(encoding="utf-8"))["rules"]
    missed, false = [], []
    for entry in entries:
        code = f"SNG4{entry['id'][-2:]}"
        # The good one of TFM022 says of itself that it stands before the import.
        late = entry["id"] != "TFM022"
        good = PRELUDE + entry["good"] if late else f"{entry['good']}\n{PRELUDE}"
        # WHEN they are linted
        if code not in {one.code for one in lint_text(f"{PRELUDE}{entry['bad']}\n")}:
            missed.append(entry["id"])
        if lint_text(f"{good}\n"):
            false.append(entry["id"])
    # THEN every bad one is found by its rule, and no good one by any
    assert (len(entries), missed, false) == (34, [], [])
