"""Jacobians on the workers of an engine: pieces as tasks, written by workers, or left to be asked.

Blocks are those of the planner, with the room of the smallest worker for a budget. With `out=` each
worker writes its lines into one store that all of them see. Without it the result is a Dask array,
of which nothing is computed until somebody asks for it.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from snugly.devices.process import resident_bytes
from snugly.engines.engine import Engine, Task, Worker, limit_for, room_of, smallest_room
from snugly.engines.folders import require_folder
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.jacobians import on_workers
from snugly.jacobians.on_workers import Parcel, Written
from snugly.jacobians.pieces import (
    Outline,
    as_record,
    chunk_of_a_piece,
    cut,
    left_over,
    lines_of_a_piece,
    sent,
)
from snugly.jacobians.shipping import pack
from snugly.jacobians.streaming import fingerprint_of, open_store
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from snugly.jacobians.known import Known
    from snugly.jacobians.plan import Plan, Request
    from snugly.jacobians.stores import Store

_BETWEEN_NOTES: Final = 1.0
_ROOM_ENOUGH: Final = 256 << 20
"""With less room than this in a worker, nothing is kept there from one Jacobian to the next."""
_NEAR: Final = 1.3
"""A budget up to so much larger than the last one does not make another plan worth its time."""
_settled: WeakKeyDictionary[Known, tuple[Size, Size]] = WeakKeyDictionary()
"""The budget that a function was last planned with, and the peak that came of it."""


class Crew:
    """The workers, and what each may hold."""

    def __init__(self, engine: Engine, about: Known, memory: Size | None) -> None:
        if about.subject.random:
            raise InputError(f"{about.subject.title} draws random numbers", code="SNG528")
        self.engine, self._about = engine, about
        self.workers: list[Worker] = engine.workers(tensorflow=True)
        self.threads = max(1, min(worker.threads for worker in self.workers))
        self._stated = memory
        room, resident, self._smallest = self._smallest_room()
        self._resident = resident + self.carried
        room = max(0, room - self.carried)
        self.budget = Size(room) if memory is None else min(Size(room), memory)
        # What workers hold is never quite the same; a plan that still fits is not made anew.
        before, peak = _settled.get(about, (Size(0), Size(0)))
        if peak <= self.budget <= before.times(_NEAR) and (memory is None or before <= memory):
            self.budget = before

    def _smallest_room(self) -> tuple[int, int, Worker]:
        """The least room of a worker, what that one holds once it is ready, and which it is."""
        try:
            found = self.engine.everywhere(on_workers.ready, self.threads, self._roomy())
        except InputError as error:
            limited = [worker for worker in self.workers if worker.memory_limit is not None]
            if error.code != "SNG585" or not limited:
                raise
            # Its limit is below what TensorFlow alone takes, which is taken to be as much as here.
            smallest = min(limited, key=lambda worker: int(worker.memory_limit or 0))
            return 0, resident_bytes(), smallest
        return smallest_room(self.workers, found)

    def _roomy(self) -> int:
        """What a worker may hold and still have room enough, for the plan of the last call too."""
        limits = [int(worker.memory_limit or 1 << 62) for worker in self.workers]
        _, peak = _settled.get(self._about, (Size(0), Size(0)))
        wanted = max(peak, _ROOM_ENOUGH if self._stated is None else int(self._stated))
        least = replace(self.workers[0], memory_limit=Size(min(limits)))
        return room_of(least, wanted + self.carried, 0, 1)

    @property
    def carried(self) -> int:
        """Bytes of weights and inputs in each worker: as they came, and as TensorFlow has them."""
        graph = self._about.subject.concrete.graph
        weights = sum(int(np.prod(v.shape)) * v.dtype.size for v in graph.variables)
        return 2 * (weights + self._about.subject.held)

    def plan(self, make: Callable[[], Plan]) -> Plan:
        """The plan, or a refusal that names a worker's limit."""
        try:
            plan = make()
        except MemoryLimitExceeded as error:
            if self._stated is not None and self._stated <= self.budget:
                raise
            raise self._refusal(error) from error
        _settled[self._about] = self.budget, plan.peak
        on = f"; on {len(self.workers)} workers of {self.engine.title}"
        return replace(plan, reason=plan.reason + on)

    def _refusal(self, error: MemoryLimitExceeded) -> InputError:
        said = error.message.partition("(")[2].partition(" bytes")[0].replace(",", "")
        least = int(said) if said.isdigit() else int(self.budget) + 1
        limit = limit_for(least, self._resident)
        worker = self._smallest
        offered = "no limit" if worker.memory_limit is None else f"a limit of {worker.memory_limit}"
        return InputError(
            f"{worker.name} has {offered}, which leaves {self.budget} for work: one block of this"
            f" Jacobian takes {Size(least)}",
            code="SNG584",
            hint=f"start workers with --memory-limit {int(limit)} ({limit}), or more; or have them"
            " begin anew with `client.restart()`, if they have worked before: TensorFlow keeps"
            " some of what it once took",
        )


def stream_on(  # noqa: PLR0913 - what a computation is made of
    crew: Crew,
    about: Known,
    plan: Plan,
    leaves: Sequence[Any],
    path: Path,
    *,
    whole: bool,
    narrow: Any,
    overwrite: bool,
    progress: Callable[[float], None],
) -> tuple[Store, bool]:
    """Have workers fill a store, or go on filling it; whether some entry may not be finite."""
    examples = plan.portions[0].lines.examples
    store = open_store(
        path.absolute(), about.subject, examples=examples, whole=whole, narrow=narrow
    )
    require_parent(store)
    hint = 'name a store on a file system that all workers share: out="/shared/j.zarr"'
    require_folder(crew.engine, store.path.parent, hint)
    lengths = [
        lines_of_a_piece(portion, plan, len(crew.workers), store.grain) for portion in plan.portions
    ]
    # Workers with more memory, or less, go on where others stopped: how many lines at a time, and
    # which activations are made again, are no part of what must be the same.
    unplanned = replace(plan, chunk=0, segments=0)
    fingerprint = fingerprint_of(about.subject, unplanned, leaves, narrow)
    parcel = pack_parcel(crew, about, plan, leaves, lengths, whole=whole, narrow=narrow)
    done = store.begin_in_pieces(fingerprint, overwrite=overwrite)
    pieces = cut(plan, lengths)
    left = left_over(pieces, done)
    store.close()
    suspect, noted, ended = False, time.monotonic(), len(pieces) - len(left)
    crew.engine.provide(parcel.name, parcel)
    by_key = {piece.key: piece for piece in left}
    tasks = [
        Task(key, on_workers.write_piece, (parcel.name, p, store)) for key, p in by_key.items()
    ]
    running = crew.engine.run(tasks)
    try:
        for key, found in running:
            assert isinstance(found, Written)
            suspect |= not found.finite
            done.append(as_record(by_key[key]))
            ended += 1
            progress(ended / len(pieces))
            if time.monotonic() - noted > _BETWEEN_NOTES:
                store.note(fingerprint, done)
                noted = time.monotonic()
        store.finish()
    except BaseException:
        with contextlib.suppress(Exception):
            store.note(fingerprint, done)
        raise
    finally:
        running.close()  # type: ignore[attr-defined]
        with contextlib.suppress(Exception):  # workers may be gone
            crew.engine.everywhere(on_workers.forget, parcel.name)
            crew.engine.withdraw(parcel.name)
    return store, suspect


def require_parent(store: Store) -> None:
    """Refuse a store in a folder that is not there, before workers are asked about it."""
    if not store.path.parent.is_dir():
        raise InputError(
            f"{store.path} cannot be written: there is no folder {store.path.parent}",
            code="SNG527",
            hint="make the folder first, where all workers see it",
        )


def pack_parcel(  # noqa: PLR0913 - what a parcel is made of
    crew: Crew,
    about: Known,
    plan: Plan,
    leaves: Sequence[Any],
    lengths: Sequence[int],
    *,
    whole: bool,
    narrow: Any,
) -> Parcel:
    """All that a worker needs: a program for each portion, in chunks that fit its pieces."""
    values: dict[int, np.ndarray] = {}
    portions, programs = [], []
    few = about.of_batch(plan.batch)
    for portion, length in zip(plan.portions, lengths, strict=True):
        chunk = chunk_of_a_piece(portion, length)
        program = few.step(portion.lines, chunk, vectorised=portion.vectorised, narrow=narrow)
        programs.append(pack(program, about.subject.title, values))
        portions.append(sent(portion, chunk))
    outline = Outline(tuple(about.subject.outputs), tuple(about.subject.sources))
    return Parcel(
        f"snugly-jacobian-{uuid.uuid4().hex}",
        outline,
        tuple(portions),
        tuple(programs),
        tuple(leaf.numpy() for leaf in leaves),
        plan.batch,
        whole,
        crew.threads,
    )


def request_for(crew: Crew, request: Request) -> Request:
    """The request as it stands for one worker, which holds a few lines and never the result."""
    lazy = not request.streamed
    return replace(request, budget=crew.budget, available=None, streamed=True, lazy=lazy)
