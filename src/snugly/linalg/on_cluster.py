"""Determinants on the workers of an engine: what is given out, and how it comes together again.

Small matrices and stacks go to workers whole, a few at a time. A large matrix is cut into panels of
full height, and each is a chain of tasks (`chains`): read, bring up to date with the panels before
it as they are finished, factor. As many chains are under way as there are workers, and pivots are
searched for in whole columns, as on one machine. Where no panel of full height fits a worker, one
worker does it in tiles, with pivots by tournament.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.engines.engine import Engine, Task, Worker, limit_for, smallest_room
from snugly.errors import InputError
from snugly.linalg import chains
from snugly.linalg.certainty import count_of_probes
from snugly.linalg.chains import Finished, Job
from snugly.linalg.computing import Settings, compute
from snugly.linalg.factored import Factored
from snugly.linalg.outcome import Outcome
from snugly.linalg.plan import Plan, choose, choose_shared, least_shared
from snugly.linalg.product import Product
from snugly.linalg.scan import Scales
from snugly.linalg.shared_folder import SharedFolder, source_for_workers
from snugly.linalg.shelf import Shelf
from snugly.linalg.sources import PartOfStack
from snugly.progress import shown
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from snugly.linalg.sources import Source

_WHOLE: Final = 1024
"""Matrices up to this size go to one worker whole; cut up, they would be slower."""
_PANELS_PER_WORKER: Final = 8
"""Panels for each worker: with fewer, workers wait for one another at the end."""
_NARROW: Final = 192
"""Panels are not made narrower than this for the sake of their number."""
_PARTS_PER_WORKER: Final = 4


@dataclass(frozen=True, slots=True)
class _Crew:
    """The workers, and what each may hold."""

    engine: Engine
    workers: list[Worker]
    room: Size
    """Of the one that has least."""
    resident: int
    smallest: Worker
    threads: int


def compute_on(engine: Engine, a: Any, settings: Settings) -> Outcome:
    """The determinants of whatever a user may give for matrices."""
    with SharedFolder(engine, settings.scratch) as folder:
        source = source_for_workers(a, folder)
        if source.count == 0 or source.size == 0:
            return compute(source, settings)
        crew = _crew(engine, settings)
        if source.size <= _WHOLE or source.count > 1:
            return _in_parts(crew, source, settings)
        return _large(crew, source, settings, folder)


def _crew(engine: Engine, settings: Settings) -> _Crew:
    workers = engine.workers()
    found = engine.everywhere(_ready)
    room, resident, smallest = smallest_room(workers, found)
    if settings.budget is not None:
        room = min(room, int(settings.budget))
    threads = min(worker.threads for worker in workers)
    return _Crew(engine, workers, Size(max(0, room)), resident, smallest, threads)


def _ready() -> tuple[int, int]:
    """What this worker's process holds once it is ready, and what its machine has."""
    from snugly.devices import heap, host_memory
    from snugly.devices.process import resident_bytes

    chains.let_go()
    heap.give_back_unused()
    return resident_bytes(), int(host_memory().bytes)


def _in_parts(crew: _Crew, source: Source, settings: Settings) -> Outcome:
    """Whole matrices, a few for each task."""
    count = source.count
    parts = min(count, len(crew.workers) * _PARTS_PER_WORKER)
    cuts = [count * number // parts for number in range(parts + 1)]
    quiet = replace(
        settings, budget=crew.room, overwrite=False, progress=None, compiled=False, scratch=None
    )
    tasks = [
        Task(f"part-{number}", _part, (source, begin, end, quiet))
        for number, (begin, end) in enumerate(pairwise(cuts))
    ]
    found: dict[str, Outcome] = {}
    with shown(f"determinant of {source.title}", settings.progress) as progress, _refusing(crew):
        # Asked here first: a worker that is over its limit already would never begin.
        largest = (-(-count // parts), *source.shape[-2:]) if source.batch else source.shape
        choose(largest, source.working, crew.room, overwritable=False, reading=source.reading)
        for key, outcome in crew.engine.run(tasks):
            found[key] = outcome
            progress(len(found) / len(tasks))
    return _joined([found[task.key] for task in tasks], source, crew)


def _part(source: Source, begin: int, end: int, settings: Settings) -> Outcome:
    return compute(PartOfStack(source, begin, end) if source.batch else source, settings)


def _joined(parts: list[Outcome], source: Source, crew: _Crew) -> Outcome:
    first = parts[0]
    names = ("sign", "logabs", "error", "certain", "mantissa", "exponent")
    whole = all(part.mantissa is not None for part in parts)
    kept = names if whole else names[:4]
    joined: dict[str, Any] = {
        name: np.concatenate([np.ravel(getattr(part, name)) for part in parts]).reshape(
            source.batch
        )
        for name in kept
    }
    methods = dict.fromkeys(part.method for part in parts)
    reasons = dict.fromkeys(part.reason for part in parts)
    return Outcome(
        **{"mantissa": None, "exponent": None, **joined},
        method="+".join(dict.fromkeys("+".join(methods).split("+"))),
        reason=f"{'; '.join(reasons)}; on {len(crew.workers)} workers of {crew.engine.title}",
        peak=max(part.peak for part in parts),
        is_certain=first.is_certain and all(part.is_certain for part in parts),
    )


def _large(crew: _Crew, source: Source, settings: Settings, folder: SharedFolder) -> Outcome:
    plan = _plan(crew, source)
    if plan.method == "tiles":
        return _in_parts(crew, source, settings)
    outcome = Outcome.empty(source, plan)
    outcome.reason += f"; {len(crew.workers)} workers of {crew.engine.title} share them"
    with shown(f"determinant of {source.title}", settings.progress) as progress:
        outcome.put(0, _factor(crew, source, plan, folder, progress))
        wide = {"float32": np.float64, "complex64": np.complex128}.get(source.working.name)
        if wide is not None and not outcome.certain.all():
            wider = source.computed_in(np.dtype(wide))
            with contextlib.suppress(InputError):
                outcome.put(0, _factor(crew, wider, _plan(crew, wider), folder, lambda _: None))
                outcome.note_second_look("float64")
    outcome.note_what_is_open(int((~outcome.certain).sum()))
    return outcome


def _plan(crew: _Crew, source: Source) -> Plan:
    shape, count = (source.size, source.size), len(crew.workers)
    widest = max(_NARROW, -(-source.size // (_PANELS_PER_WORKER * count)))
    plan = choose_shared(shape, source.working, crew.room, reading=source.reading, widest=widest)
    if plan is None:
        raise _too_small(crew, int(least_shared(shape, source.working, source.reading)))
    return plan


def _too_small(crew: _Crew, least: int) -> InputError:
    worker, limit = crew.smallest, limit_for(least, crew.resident)
    if worker.memory_limit is None:
        offered = "which has no limit of its own on a machine that is full"
    else:
        offered = f"whose limit is {worker.memory_limit}"
    return InputError(
        f"{worker.name}, {offered}, has {crew.room} for this determinant: the least is"
        f" {Size(least)}",
        code="SNG584",
        hint=f"start workers with --memory-limit {int(limit)} ({limit}), or more",
    )


@contextlib.contextmanager
def _refusing(crew: _Crew) -> Iterator[None]:
    """Say of a worker, not of a call, that it has too little."""
    try:
        yield
    except InputError as error:
        if error.code != "SNG506":
            raise
        least = int(error.hint.partition("memory=")[2].rstrip("`") or 0)
        raise _too_small(crew, least) from error


def _factor(
    crew: _Crew,
    source: Source,
    plan: Plan,
    folder: SharedFolder,
    progress: Callable[[float], None],
) -> Factored:
    """Factor one matrix: look at it, run the chains, go back for the error bar."""
    place = folder.new_shelf(int(plan.scratch))
    shelf = Shelf(
        place, source.size, plan.width, plan.height, source.working, count_of_probes(source.size)
    )
    job = Job(source, 0, shelf, crew.threads)
    try:
        scales = _look(crew, job)
        if not scales.values.all():
            return Factored.zero()
        exponents = scales.exponents()
        chains.save_scales(shelf, scales.scaled(exponents), exponents)
        product = _pivots(crew, job, progress)
        if product is None:
            return Factored.undecided()
        product.scaled(exponents)
        ((_, bar),) = crew.engine.run([Task("bar", chains.error_bar, (job,))])
        return Factored(product, bar)
    finally:
        with contextlib.suppress(Exception):  # workers may be gone
            crew.engine.everywhere(chains.forget, place)
        folder.remove(place)


def _look(crew: _Crew, job: Job) -> Scales:
    size, count = job.source.size, len(crew.workers)
    cuts = [size * number // count for number in range(count + 1)]
    tasks = [
        Task(f"look-{number}", chains.look, (job, begin, end), place=number)
        for number, (begin, end) in enumerate(pairwise(cuts))
        if begin < end
    ]
    scales = Scales(job.source)
    for _, reach in crew.engine.run(tasks):
        scales.take(reach)
    return scales


def _pivots(crew: _Crew, job: Job, progress: Callable[[float], None]) -> Product | None:
    """The product of all pivots; None once one of them is zero."""
    found: dict[int, Finished] = {}
    count = job.shelf.count
    running = crew.engine.run(list(_tasks(job, len(crew.workers))))
    with contextlib.closing(running):  # type: ignore[type-var]
        for _, result in running:
            if not isinstance(result, Finished):
                continue
            if not result.diagonal.all():
                return None
            found[result.number] = result
            progress((len(found) / count) ** 2)
    product = Product()
    for number in range(count):
        product.multiply(found[number].diagonal)
        product.swapped(found[number].pivots)
    return product


def _tasks(job: Job, workers: int) -> Iterator[Task]:
    """The chain of each panel: stages that wait for the panel they apply last.

    Stages come closer together towards the end, so that of a panel just finished only itself is
    left to be applied: what all wait for is one panel applied and one factored, each time.
    """
    behind = {workers - 1, 0, *(1 << power for power in range(workers.bit_length()))}
    distances = sorted((d for d in behind if d < workers), reverse=True)
    for number in range(job.shelf.count):
        before: str | None = None
        for until in sorted({max(0, number - distance) for distance in distances}):
            key = f"panel-{number}-{until}"
            after = [before] if before is not None else []
            if until:
                after.append(f"panel-{until - 1}-{until - 1}")
            yield Task(key, chains.advance, (job, number, until), tuple(after), number % workers)
            before = key


def bytes_needed(size: int, itemsize: int) -> int:
    """Bytes that must be written at least: L, where it cannot be kept in memory."""
    return math.comb(size, 2) * itemsize
