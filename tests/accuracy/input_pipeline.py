"""Host memory of pipelines, predicted and measured: `python -m tests.accuracy.input_pipeline`.

Each pipeline of `tests/training/pipelines.py` runs in a process of its own, with a consumer that is
slower than it; measured is what the resident set grew by. Other work on the machine shows in it.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PIPELINES = Path(__file__).parents[1] / "training" / "pipelines.py"
GOAL = 0.15


def main() -> int:
    """All pipelines, or those that are named."""
    sys.path.insert(0, str(PIPELINES.parent))
    import pipelines

    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    missed = 0
    for name in sys.argv[1:] or pipelines.NAMES:
        command = [sys.executable, str(PIPELINES), name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        off = found["predicted"] / found["measured"] - 1
        missed += abs(off) > GOAL
        print(
            f"{name:32} predicted {found['predicted'] / 2**20:7.1f} MiB"
            f"  measured {found['measured'] / 2**20:7.1f} MiB  {off:+.1%}",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
