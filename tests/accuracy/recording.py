"""Records against TensorFlow's own count: the peak to the byte, every event, who made what.

    python -m tests.accuracy.recording [NAME…]

Profiles each program of `recorded/` as a user would, and prints a table. Programs say at their end
what `get_memory_info` says, in a file that the record does not see.
"""

# ruff: noqa: T201 - a command line prints
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from snugly.recording.file import read_record

if TYPE_CHECKING:
    from snugly.recording.record import Record

PROGRAMS = Path(__file__).parent / "recorded"
NAMES = ("resnet50", "transformer", "lstm", "custom_loop", "eager_loop")
_ASK = """
import json as _json, tensorflow as _tensorflow
_info = _tensorflow.config.experimental.get_memory_info("CPU:0")
open({answer!r}, "w").write(_json.dumps(_info))
"""


@dataclass(frozen=True)
class Finding:
    """How well one program's record agrees with what is true."""

    name: str
    record: Record
    true_peak: int

    @property
    def unaccounted(self) -> int:
        """Chunk bytes by which the buffers of the timeline, at their most, miss the true peak."""
        timeline = self.record.timeline
        change = np.zeros(timeline.length + 1, np.int64)
        for span in timeline.spans:
            change[span.birth] += span.allocated
            change[span.death] -= span.allocated
        return self.true_peak - int(np.cumsum(change).max())

    @property
    def lost_events(self) -> int:
        """Events of the windows that are no birth or death of a buffer in the timeline."""
        timeline = self.record.timeline
        moments = {span.birth for span in timeline.spans} | {
            span.death for span in timeline.spans if span.death < timeline.length
        }
        return timeline.length - 1 - len(moments - {0})

    def share(self, attribute: str) -> float:
        """The part of the bytes at the peak that have a layer, a line or a known kind."""
        sizes = np.array([int(tensor.bytes) for tensor in self.record.tensors])
        known = [
            tensor.kind != "unknown" if attribute == "kind" else bool(getattr(tensor, attribute))
            for tensor in self.record.tensors
        ]
        return float((sizes * np.array(known)).sum() / sizes.sum())


def record_program(name: str, folder: Path) -> Finding:
    """Run a program under `snugly profile`, with a last question to TensorFlow."""
    script, output, answer = folder / f"{name}.py", folder / "run.snugly", folder / "answer.json"
    program = (PROGRAMS / f"{name}.py").read_text()
    script.write_text(program + _ASK.format(answer=str(answer)))
    subprocess.run(
        [sys.executable, "-m", "snugly", "profile", "--trace", "full", "-o", output, script],
        check=True,
        capture_output=True,
        cwd=folder,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    told = json.loads(answer.read_text())
    return Finding(name, read_record(output), told["peak"])


def main() -> None:
    """Print one line for each program."""
    print("program       peak (bytes)   off by  unaccounted  events  lost   kind    line   layer")
    for name in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            found = record_program(name, Path(folder))
        shares = "  ".join(f"{found.share(what):6.2%}" for what in ("kind", "line", "layer"))
        print(
            f"{name:12} {int(found.record.peak):13,} {int(found.record.peak) - found.true_peak:8}"
            f" {found.unaccounted:12} {found.record.timeline.length - 1:7} {found.lost_events:5}"
            f"  {shares}",
            flush=True,
        )


if __name__ == "__main__":
    main()
