"""The code on the page about integrations runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/integrations.md").read_text()
FILES = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
EXPECTED = {
    "train.py": r"\[\d+, \d+, \d+\]\nmeasured in epoch .*\n +1 .* MiB",
    "stop.py": r"training stopped after batch \d+ of epoch 1: the process occupied 1\.. GiB",
    "test_memory.py": r"2 passed",
}


def test_all_code_of_the_page_is_run():
    assert FILES.keys() == EXPECTED.keys()
    assert PAGE.count("```python") == len(FILES)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", EXPECTED)
def test_the_code_runs_and_does_what_the_page_says(name, tmp_path):
    (tmp_path / name).write_text(FILES[name])
    command = [sys.executable, name]
    settings = {"CUDA_VISIBLE_DEVICES": "-1", "PYTHONWARNINGS": "ignore::UserWarning"}
    if name.startswith("test_"):
        plugin = ["-p", "snugly.integrations.pytest_plugin"]
        command = [sys.executable, "-m", "pytest", "-q", *plugin, name]
        settings["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert re.search(EXPECTED[name], done.stdout), done.stdout
