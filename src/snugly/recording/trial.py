"""Tries one batch: `python -m snugly.recording.trial REQUEST ANSWER WORD MIB`.

It imports TensorFlow, which is a third of a short run, and waits until it reads the batch size from
stdin. Until then it holds nothing on any device. Where nobody asks any more, it ends. Before the
first step it leaves word of the device that it runs on.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from snugly.errors import SnuglyError
from snugly.recording import allocator
from snugly.recording.steps import arrive, repeat, tell


def main() -> int:
    """Take the steps of a request; the answer has the peak, or what went wrong."""
    from snugly.readers.start import load_tensorflow

    request, answer, word = map(Path, sys.argv[1:4])
    limit = int(sys.argv[4])
    load_tensorflow()
    batch = sys.stdin.readline().strip()
    if not batch:
        return 0
    try:
        peak = _peak(request.read_bytes(), int(batch), limit, word)
    except SnuglyError as problem:
        tell(problem, answer)
        return 1
    answer.write_text(json.dumps({"peak": peak}))
    return 0


def _peak(request: bytes, batch: int, limit: int, word: Path) -> int | None:
    """The most that was held after the first step; None where TensorFlow keeps no figures."""
    arrived = arrive(request, limit)
    arrived = replace(arrived, task=replace(arrived.task, batch_size=batch))

    def begin() -> None:
        for device in allocator.device_names():
            allocator.reset_peak(device)

    word.write_text(allocator.main_device())
    repeat(arrived, limit, begin, lambda _: None)
    info = allocator.memory_info(allocator.main_device())
    return None if info is None else info.peak


if __name__ == "__main__":
    sys.exit(main())
