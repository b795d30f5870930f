"""Three runs of train.py, each in a process of its own, and what became of them.

Nothing is left behind: what runs write goes to a folder that is removed, and runs that are going on
when this one is stopped are stopped, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

STEPS = 4
"""In an epoch: always over the same pictures, so that losses can be compared."""
AGREES = 1e-4
"""Relative: additions may come in another order, and every step builds on the last."""
_TRAIN = Path(__file__).with_name("train.py")
_PATIENCE = 10
"""Seconds that a run has to end by itself when it is told to."""


def compare(asked: argparse.Namespace) -> int:
    """Plain in the limit, shrunk in the limit, plain without one; 0 where all went as it should."""
    from snugly import Size

    memory = asked.memory
    print("Three runs at once, each in a process of its own; a minute or two on two cores.\n")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        limited = stack.enter_context(run("--plain", asked, memory, folder / "limited"))
        shrunk = stack.enter_context(run("--shrunk", asked, memory, folder / "shrunk"))
        free = stack.enter_context(run("--plain", asked, None, folder / "free"))
        print(f"fit, in {memory} …", flush=True)
        died = limited.wait() != 0
        if died and not last_words(limited):
            return failed(limited)
        print(f"  {last_words(limited) or f'trained: give less than {memory}'}")
        print("fit, with no limit, to compare with …", flush=True)
        if free.wait():
            return failed(free)
        print(f"  trained; the peak was {Size(free.found['peak'])} (measured)")
        print(f"fit of what snugly.shrink makes, in {memory} …", flush=True)
        if shrunk.wait():
            return failed(shrunk)
        print(f"{shrunk.said}  trained; the peak was {Size(shrunk.found['peak'])} (measured)")
        return table(free.found, shrunk.found, died=died)


@dataclass(frozen=True)
class Run:
    """A run in a process of its own, and the folder that it leaves things in."""

    process: subprocess.Popen[bytes]
    folder: Path

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait()

    @property
    def said(self) -> str:
        """What it printed, but for what `fit` prints for each epoch."""
        lines = (self.folder / "said").read_text().splitlines()
        progress = ("Epoch ", f"{STEPS}/{STEPS} ")
        return "".join(f"  {line}\n" for line in lines if not line.startswith(progress))

    @property
    def words(self) -> str:
        """What it wrote to stderr."""
        return (self.folder / "words").read_text(errors="replace")

    @property
    def found(self) -> dict[str, Any]:
        """Its peak and losses."""
        return json.loads((self.folder / "result.json").read_text())


@contextlib.contextmanager
def run(how: str, asked: argparse.Namespace, memory: str | None, folder: Path) -> Iterator[Run]:
    """Start train.py for one run, which does not outlive this block, however that is left."""
    folder.mkdir()
    command = [sys.executable, str(_TRAIN), how, "--result", str(folder / "result.json")]
    for name in ("epochs", "batch_size", "side", "seed"):
        command += [f"--{name.replace('_', '-')}", str(getattr(asked, name))]
    command += [] if memory is None else ["--memory", memory]
    # How a run died is told from TensorFlow's warnings, which may have been switched off.
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "1"}
    # To files, not pipes: TensorFlow writes thousands of lines when it runs out of memory.
    with (folder / "said").open("wb") as said, (folder / "words").open("wb") as words:
        process = subprocess.Popen(  # noqa: S603
            command, stdout=said, stderr=words, env=environment
        )
    try:
        yield Run(process, folder)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def last_words(ended: Run) -> str:
    """How a run ended that was refused memory; nothing, if it ended in another way."""
    code = ended.wait()
    words = ended.words
    refused = [line for line in words.splitlines() if "OOM when allocating" in line]
    if -code in {signal.SIGSEGV, signal.SIGABRT} and "ran out of memory" in words:
        # Some kernels of oneDNN use what the allocator would not give them.
        return f"died of {signal.Signals(-code).name} after the allocator refused memory"
    if not code or not refused:
        return ""
    what, _, _ = refused[-1].strip().partition(" on ")
    return f"died: {what}"


def failed(ended: Run) -> int:
    """A run that ended as it should not have, and what it wrote last."""
    print(f"  died with exit code {ended.wait()}:\n{ended.words[-2000:]}", file=sys.stderr)
    return 1


def table(plain: dict[str, Any], small: dict[str, Any], *, died: bool) -> int:
    """The losses side by side, and what follows."""
    print("\n  epoch     fit  shrunk  apart   (losses, measured)")
    losses = list(zip(plain["loss"], small["loss"], strict=True))
    apart = [abs(one - other) / one for one, other in losses]
    for epoch, ((one, other), away) in enumerate(zip(losses, apart, strict=True), start=1):
        print(f"  {epoch:5} {one:7.4f} {other:7.4f}  {away:.0e}")
    agree, fall = max(apart) <= AGREES, small["loss"][-1] < small["loss"][0]
    print(f"\nfit {'died in' if died else 'did NOT die in'} the memory that the shrunk model took;")
    print(f"the losses {'agree' if agree else 'DIFFER'}, and {'fall' if fall else 'DO NOT FALL'}.")
    return 0 if agree and fall and died else 1
