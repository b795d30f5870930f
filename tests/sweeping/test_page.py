"""The code on the page about sweeps runs, and prints what the page says."""

from pathlib import Path

from tests.test_answers import is_as_said, read_page, run

PAGE = Path(__file__).parents[2] / "docs/commands/sweep.md"


def test_the_code_of_the_page_runs_and_prints_what_the_page_says(tmp_path):
    page = read_page(PAGE.read_text())
    printed = run(page, tmp_path, "sweep")
    assert len(printed) == len(page.said) == 2
    for lines, (line, said) in zip(printed, page.said, strict=True):
        assert is_as_said(lines, said), f"{PAGE.name}:{line} prints\n" + "\n".join(lines)


def test_only_what_needs_a_cluster_is_left_out():
    code = [mark for mark in read_page(PAGE.read_text()).left_out if mark.startswith("python")]
    assert code == ["python not-run: needs a cluster"]
