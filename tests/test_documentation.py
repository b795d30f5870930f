"""The documentation has a page for every command, every code and every question."""

import re
from pathlib import Path

import pytest

from snugly.cli.main import COMMANDS
from snugly.codes import REGISTRY

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_page_that_is_linked(name):
    assert (ROOT / f"docs/commands/{name}.md").read_text().startswith(f"# snugly {name}\n")
    assert f"commands/{name}\n" in (ROOT / "docs/index.md").read_text()


def test_pages_mention_only_codes_that_exist():
    mentioned = {code for page in PAGES for code in re.findall(r"SNG\d{3}", page.read_text())}
    assert mentioned
    assert mentioned <= REGISTRY.keys()


def test_source_mentions_only_codes_that_exist():
    # GIVEN the modules of the package WHEN they name a code THEN it is registered
    for module in (ROOT / "src").rglob("*.py"):
        assert set(re.findall(r"SNG\d{3}", module.read_text())) <= REGISTRY.keys(), module


def test_there_are_five_answers():
    answers = sorted((ROOT / "docs/answers").glob("*.md"))
    questions = [page for page in answers if page.name != "index.md"]
    assert len(questions) == 5
    for page in questions:
        assert page.read_text().splitlines()[0].endswith("?")


def test_the_readme_has_two_commands_that_the_makefile_knows():
    makefile = (ROOT / "Makefile").read_text()
    commands = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert commands == ["demo", "test"]
    for name in commands:
        assert re.search(rf"^{name}:", makefile, re.MULTILINE)
