"""How long `snugly --help` takes, beside a Python that does nothing.

The goal is 0.3 s of wall clock. The ratio to an empty Python is what can be compared between
machines.
"""

import statistics
import subprocess
import sys
import time

GOAL_SECONDS = 0.3
REPEATS = 15


def median_seconds(*words: str) -> float:
    """The median wall clock of a command in fresh processes."""
    times: list[float] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> int:
    """Print the table; 1 if the goal was missed."""
    empty = median_seconds("-c", "pass")
    print(f"{'command':<24}{'median':>9}{'ratio':>8}   (ratio to `python -c pass`)")
    print(f"{'python -c pass':<24}{empty:>8.3f}s{1.0:>8.1f}")
    timed = {
        "import snugly": ("-c", "import snugly"),
        "snugly --help": ("-m", "snugly", "--help"),
        "snugly predict --help": ("-m", "snugly", "predict", "--help"),
        "snugly devices": ("-m", "snugly", "devices"),
        "snugly doctor": ("-m", "snugly", "doctor"),
    }
    seconds = {name: median_seconds(*words) for name, words in timed.items()}
    for name, value in seconds.items():
        print(f"{name:<24}{value:>8.3f}s{value / empty:>8.1f}")
    missed = seconds["snugly --help"] > GOAL_SECONDS
    print(f"goal for --help {GOAL_SECONDS} s: {'missed' if missed else 'met'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
