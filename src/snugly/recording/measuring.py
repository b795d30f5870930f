"""measure: run a program for a few steps in a fresh process, and give back what it took."""

from __future__ import annotations

import signal
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from snugly.errors import InputError, MemoryLimitExceeded, SnuglyError
from snugly.recording.allocator import CPU_LIMIT, USE_BFC
from snugly.recording.carrying import EXCEEDED, Task, pack
from snugly.recording.file import cannot_write, read_record, write_record
from snugly.recording.profiling import run_python
from snugly.units import Size

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from snugly.recording.record import Record

_LAST_WORDS = 2000  # characters of a failed process's stderr
_CRASHES = {128 + number for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)}


def measure(  # noqa: PLR0913  # the public contract
    program: Any,
    *example: Any,
    batch_size: int | None = None,
    training: bool = False,
    steps: int = 5,
    dimensions: Mapping[str, int] | None = None,
    memory: str | SupportsIndex | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Record:
    """Really run a program, in a process of its own, and record every allocation.

    The first step builds what is built once (functions, optimizer slots) and does not count; the
    peak is that of the steps that follow. Weights get fresh values: their sizes are what counts.
    ::

        r = snugly.measure(model, batch_size=32, training=True)
        print(r.peak, r.parts, r.tensors[0])

    Args:
        program: what `snugly.predict` takes: a model, a function, or where one is to be found.
        *example: what it is called with. Arrays and tensors are used as they are; of specs, zeros.
        batch_size: the size of every first dimension that the program leaves open.
        training: train on a batch, else predict one.
        steps: how many steps count.
        dimensions: the sizes of other open dimensions, by name.
        memory: what TensorFlow's allocator may have, in whole MiB; without it, all there is.
        path: where to leave the record, if anywhere.

    Raises:
        MemoryLimitExceeded: The program needs more than `memory`; this process is untouched.
    """
    if steps < 1:
        raise InputError(f"there must be at least one step, not {steps}", hint="give steps=5")
    if batch_size is not None and batch_size < 1:
        raise InputError(
            f"the batch size must be at least 1, not {batch_size}", hint="give batch_size=32"
        )
    limit = None
    if memory is not None:
        limit = int(Size(memory)) >> 20
        if not limit:
            raise InputError(f"the limit must be at least 1 MiB, not {memory!r}", code="SNG004")
    task = Task(program, example, batch_size, training, steps, dict(dimensions or {}))
    with tempfile.TemporaryDirectory(prefix="snugly-") as folder:
        request, raw = Path(folder) / "request", Path(folder) / "raw.snugly"
        answer, words = Path(folder) / "answer", Path(folder) / "stderr"
        request.write_bytes(pack(task))
        module = "snugly.recording.stepping"
        code = run_python(
            ["-m", module, str(request), str(raw), str(answer), str(limit or 0)],
            errors=words,
            quiet=True,
            environment={} if limit is None else {USE_BFC: "1", CPU_LIMIT: str(limit)},
        )
        if code != 0:
            raise failure(code, answer, words, limit)
        record = read_record(raw)
        record = replace(record, facts={**record.facts, "steps": steps})
    if path is not None:
        _keep(record, Path(path))
    return record


def _keep(record: Record, path: Path) -> None:
    try:
        write_record(record, path)
    except OSError as problem:
        raise cannot_write(path, problem) from problem


def failure(code: int, answer: Path, words: Path, limit: int | None) -> SnuglyError:
    """What the process said of itself, or the last it wrote before it died."""
    import json

    if answer.exists():
        said = json.loads(answer.read_text())
        kind = MemoryLimitExceeded if said["code"] == EXCEEDED else InputError
        return kind(said["message"], code=said["code"], hint=said["hint"])
    if limit is not None and code in _CRASHES:
        # Some kernels (oneDNN's convolutions) use what the allocator refused to give them.
        return MemoryLimitExceeded(f"the program crashed within {limit} MiB", code=EXCEEDED)
    text = words.read_text(errors="replace")[-_LAST_WORDS:].strip() if words.exists() else ""
    last = text.splitlines()[-1] if text else "it said nothing"
    return InputError(
        f"the process that measured the program ended with exit code {code}: {last}", code="SNG307"
    )
