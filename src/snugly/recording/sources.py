"""Open what a run left behind: a record, a profiler's trace of somebody else, or JSON to compare.

Files are untrusted: their sizes are bounded before they are read, nothing in them is executed, and
what is wrong with them is said in a sentence. TensorFlow is not needed for any of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snugly.errors import InputError, UnreadableRecordError, suggest
from snugly.readers.xplane import LARGEST, Trace, is_xplane, read_xplane
from snugly.recording.comparison import Side, side_of
from snugly.recording.scopes import with_scopes
from snugly.recording.soundness import refuse_unsound
from snugly.recording.stated import is_stated, read_stated
from snugly.units import Size

if TYPE_CHECKING:
    import os

    from snugly.recording.record import Record

_TRACES: Final = (
    "*.xplane.pb",
    "plugins/profile/*/*.xplane.pb",
    "*/plugins/profile/*/*.xplane.pb",  # a log folder with train/ and validation/ inside
)
_DEVICE: Final = re.compile(r"(CPU|GPU):\d{1,3}")
_FOREIGN: Final = (
    "made by TensorFlow's profiler without Snugly: lines are not known, and what a tensor is only"
    " as far as the names of operations tell"
)
_HINT: Final = "`snugly profile -o run.snugly SCRIPT` makes a record"


def load(path: str | os.PathLike[str], device: str | None = None) -> Record:
    """The record of a run.

    Args:
        path: A `.snugly` record, a `*.xplane.pb` of TensorFlow's profiler, or a folder of
            TensorBoard's logs, of which the newest trace is taken.
        device: "CPU:0", "GPU:0": of which device a trace is shown that has several. By default
            a GPU's, if there is one.

    Raises:
        InputError: There is no such file, no trace in the folder, no memory event in the trace
            (SNG305), or nothing about this device.
        UnreadableRecordError: The file is not what its name says, or is damaged.
    """
    if device is not None:
        device = _checked_device(device)
    place, notes = _found(Path(path))
    if is_xplane(place):
        return _load_trace(place, device, notes)
    if is_stated(place):
        raise UnreadableRecordError(
            f"{place} is JSON, not a record", hint=f"`snugly compare {place} run.snugly` takes JSON"
        )
    record = _read_record(place)
    if device not in {None, record.device}:
        raise InputError(
            f"{place} has nothing about {device}", hint=f"it was recorded on {record.device}"
        )
    return record


def load_side(path: str | os.PathLike[str]) -> Side:
    """What `snugly compare` takes: all that `load` takes, and JSON of a prediction or a report."""
    place, _ = _found(Path(path))
    if not is_xplane(place) and is_stated(place):
        return read_stated(place)
    return side_of(load(path))


def _checked_device(device: str) -> str:
    name = device.upper()
    if not _DEVICE.fullmatch(name):
        raise InputError(f"{device!r} is not a device", hint="write CPU:0 or GPU:0")
    return name


def _read_record(path: Path) -> Record:
    from snugly.recording.file import read_record

    record = read_record(path)
    refuse_unsound(record)
    return record


def _load_trace(path: Path, device: str | None, notes: tuple[str, ...]) -> Record:
    from snugly.recording.assemble import record_of_trace
    from snugly.recording.events import choose_allocator

    trace = _read_trace(path)
    if choose_allocator(trace, device) is None:
        names = ", ".join(trace.allocators)
        raise InputError(
            f"{path} has nothing about {device or 'a device'}",
            hint=f"the allocators it tells of are {names}",
        )
    record = record_of_trace(trace, program=path.name, device=device, notes=(*notes, _FOREIGN))
    return with_scopes(record)


def _read_trace(path: Path) -> Trace:
    try:
        trace = read_xplane(_bounded(path))
    except OSError as problem:
        raise UnreadableRecordError(f"cannot read {path}: {problem.strerror}") from problem
    except UnreadableRecordError as problem:
        raise UnreadableRecordError(f"{path}: {problem}", hint=problem.hint) from None
    if not len(trace.events):
        raise InputError(
            f"{path} is a profiler's trace without memory events",
            code="SNG305",
            hint="record it with `snugly profile SCRIPT`, or trace again with"
            " TF_CPU_ALLOCATOR_USE_BFC=1 set before TensorFlow is imported",
        )
    return trace


def _bounded(path: Path) -> bytes:
    """The file's bytes; looked at before a file of any size is read."""
    size = path.stat().st_size
    if size > LARGEST:
        raise UnreadableRecordError(
            f"it has {Size(size)}; {LARGEST} is the most that can be read",
            hint="trace fewer steps, or record with `snugly profile SCRIPT`",
        )
    return path.read_bytes()


def _found(path: Path) -> tuple[Path, tuple[str, ...]]:
    """The file that is meant, and what there is to say about the choice."""
    try:
        if path.is_dir():
            return _newest_trace(path)
        if path.is_file():
            return path, ()
        if path.exists():
            raise _not_there(f"{path} is neither a file nor a folder", path)
    except OSError as problem:
        raise UnreadableRecordError(f"cannot read {path}: {problem.strerror}") from problem
    raise _not_there(f"there is no {path}", path)


def _newest_trace(folder: Path) -> tuple[Path, tuple[str, ...]]:
    traces = {trace for pattern in _TRACES for trace in folder.glob(pattern) if trace.is_file()}
    if not traces:
        raise UnreadableRecordError(
            f"there is no profiler trace (plugins/profile/*/*.xplane.pb) in the folder {folder}",
            hint=_HINT,
        )
    newest = max(traces, key=lambda trace: (trace.stat().st_mtime_ns, str(trace)))
    if len(traces) == 1:
        return newest, ()
    return newest, (f"the newest of {len(traces)} traces in {folder}",)


def _not_there(message: str, path: Path) -> UnreadableRecordError:
    """With names in the same folder that may have been meant."""
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        names = []
    return UnreadableRecordError(message, hint=suggest(path.name, names) or _HINT)
