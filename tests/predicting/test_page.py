"""The code on the page about distributed training runs, and prints what the page says."""

from pathlib import Path

import pytest
from tests.test_answers import is_as_said, read_page, run

PAGE = Path(__file__).parents[2] / "docs/distributed.md"


@pytest.mark.tensorflow
def test_the_code_of_the_page_runs_and_prints_what_the_page_says(tmp_path):
    page = read_page(PAGE.read_text())
    printed = [lines for lines in run(page, tmp_path, "distributed") if lines]
    assert len(printed) == len(page.said) >= 1
    for lines, (line, said) in zip(printed, page.said, strict=True):
        assert is_as_said(lines, said), f"{PAGE.name}:{line} prints\n" + "\n".join(lines)
