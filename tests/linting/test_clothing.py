"""The rules in other clothes than their own examples: clothing.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from snugly.linting.lint import lint_text

PRELUDE = "import tensorflow as tf\nimport numpy as np\nfrom tensorflow import keras\n"
PAIRS = tomllib.loads(Path(__file__).with_name("clothing.toml").read_text("utf-8"))["pair"]
NAMED = [pytest.param(one, id=f"{one['code']}-{place}") for place, one in enumerate(PAIRS)]


@pytest.mark.parametrize("pair", NAMED)
def test_what_is_bad_is_found(pair):
    prelude = PRELUDE.count("\n")
    # TOML takes off the first line break of a text in three quotes.
    found = {(one.code, one.line - prelude) for one in lint_text(PRELUDE + pair["bad"])}

    assert pair["code"] in {code for code, _line in found}
    if "line" in pair:
        assert (pair["code"], pair["line"]) in found


@pytest.mark.parametrize("pair", NAMED)
def test_what_is_good_is_left_alone(pair):
    found = {one.code for one in lint_text(PRELUDE + pair["good"])}

    assert pair["code"] not in found


def test_every_rule_of_the_memory_family_is_dressed_anew():
    assert {one["code"] for one in PAIRS} >= {f"SNG{number}" for number in range(401, 435)}
