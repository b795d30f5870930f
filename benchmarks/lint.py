"""How fast `snugly lint` is and how often it alarms, on code that is installed here; ruff beside.

Keras's and TensorFlow's own packages are good code, so that an alarm there is false until somebody
has looked at it. The goal is fewer than 1 in 1,000 lines. ruff has other rules and is written in
Rust; its time is what people are used to.

    python benchmarks/lint.py [FOLDER…]
"""

import collections
import resource
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from snugly.linting.jobs import available_cores
from snugly.linting.lint import lint_files, lint_text
from snugly.linting.sources import find_files

GOAL_PER_THOUSAND = 1.0
LONG = 100_000


def installed() -> list[Path]:
    """The folders of Keras and of TensorFlow's Python, where they are installed."""
    found: list[Path] = []
    for package, inner in (("keras", "."), ("tensorflow", "python")):
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parent / inner)
    return found


def seconds_of_ruff(folder: Path) -> float | None:
    """What ruff takes with all of its rules and no cache; None where it looked at nothing."""
    ruff = shutil.which("ruff") or shutil.which("ruff", path=str(Path(sys.executable).parent))
    if ruff is None:
        return None
    words = [ruff, "check", "--isolated", "--no-cache", "--select", "ALL", "--exit-zero"]
    # What is installed is left out otherwise, and what git ignores.
    words += ["--statistics", "--config", "exclude=[]", "--no-respect-gitignore"]
    start = time.perf_counter()
    done = subprocess.run([*words, str(folder)], check=False, capture_output=True)
    seconds = time.perf_counter() - start
    # Of so much code some rule of ruff's has something to say; silence means that it saw none.
    return seconds if done.stdout.strip() else None


def measure(folder: Path) -> bool:
    """Print the line of one folder; whether the goal was met."""
    files = list(find_files([folder]))
    lines = sum(Path(path).read_bytes().count(b"\n") for path in files)
    start = time.perf_counter()
    outcome = lint_files([folder], jobs=available_cores())
    seconds = time.perf_counter() - start
    rate = 1000 * len(outcome.findings) / max(lines, 1)
    peer = seconds_of_ruff(folder)
    beside = "no ruff" if peer is None else f"{peer:.1f} s ruff"
    print(
        f"{folder.parent.name}/{folder.name}: {len(files)} files, {lines:,} lines,"
        f" {seconds:.1f} s ({beside}), {lines / seconds:,.0f} lines/s,"
        f" {len(outcome.findings)} alarms, {rate:.3f} per 1,000 lines,"
        f" {len(outcome.problems)} not readable"
    )
    counts = collections.Counter(finding.code for finding in outcome.findings)
    print("  " + ", ".join(f"{code} {number}" for code, number in counts.most_common()))
    return rate < GOAL_PER_THOUSAND


def measure_long() -> None:
    """One file of 100,000 lines: seconds, and what the process has taken at most."""
    body = "".join(
        f"def f{i}(a):\n    b = tf.zeros([{i % 9}, 2])\n    return a + b\n\n"
        for i in range(LONG // 4)
    )
    start = time.perf_counter()
    lint_text(f"import tensorflow as tf\n{body}")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"one file of {LONG:,} lines: {seconds:.1f} s, process at most {peak:.0f} MiB")


def main() -> int:
    """Print the table; 1 if the goal was missed."""
    measure_long()
    folders = [Path(word) for word in sys.argv[1:]] or installed()
    met = [measure(folder.resolve()) for folder in folders]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
