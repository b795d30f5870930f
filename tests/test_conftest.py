"""CI's rule about skips, run for real in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py").read_text(encoding="utf-8")


def run_pytest(folder: Path, test: str, *, ci: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "test_sample.py").write_text(test, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", folder, folder],
        env=os.environ | {"CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


SKIP_IN_TEST = "import pytest\ndef test_it():\n    pytest.skip({reason!r})\n"
SKIP_OF_MODULE = "import pytest\npytest.skip({reason!r}, allow_module_level=True)\n"


@pytest.mark.parametrize("skip", [SKIP_IN_TEST, SKIP_OF_MODULE])
def test_ci_fails_on_a_skip_that_it_should_have_run(tmp_path, skip):
    # GIVEN a test that skips itself for no reason of the machine
    test = skip.format(reason="not today")
    # WHEN it runs in CI
    run = run_pytest(tmp_path, test, ci="true")
    # THEN the run fails and says why
    assert run.returncode != 0
    assert "skipped in CI" in run.stdout


@pytest.mark.parametrize("skip", [SKIP_IN_TEST, SKIP_OF_MODULE])
def test_elsewhere_a_skip_stays_a_skip(tmp_path, skip):
    run = run_pytest(tmp_path, skip.format(reason="not today"), ci="")
    assert "1 skipped" in run.stdout


def test_ci_accepts_a_skip_that_only_other_machines_can_run(tmp_path):
    run = run_pytest(tmp_path, SKIP_IN_TEST.format(reason="needs a GPU"), ci="true")
    assert "1 skipped" in run.stdout
    assert run.returncode == 0
