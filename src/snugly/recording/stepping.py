"""The process in which a program is measured: `python -m snugly.recording.stepping …`."""

from __future__ import annotations

import sys
from pathlib import Path

from snugly.errors import SnuglyError
from snugly.recording.recorder import Recorder
from snugly.recording.steps import arrive, repeat, tell
from snugly.recording.windows import Plan


def main() -> int:
    """Measure what the first argument holds; the record goes to the second.

    The third takes what went wrong; the last is how many MiB TensorFlow may have, 0 for any number.
    """
    request, raw, answer = map(Path, sys.argv[1:4])
    limit = int(sys.argv[4])
    recorder = Recorder(raw, Plan("full", 1 << 40), {"program": "", "mode": "measure"})
    recorder.start()
    try:
        name = _run(request.read_bytes(), recorder, limit)
    except SnuglyError as problem:
        tell(problem, answer)
        return 1
    recorder.stop(program=name)
    return 0


def _run(request: bytes, recorder: Recorder, limit: int) -> str:
    from snugly.readers.start import load_tensorflow

    load_tensorflow()
    arrived = arrive(request, limit)
    repeat(arrived, limit, recorder.mark_beginning, recorder.name_inputs)
    return arrived.name


if __name__ == "__main__":
    sys.exit(main())
