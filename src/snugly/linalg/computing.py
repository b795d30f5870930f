"""From a source of matrices to their determinants: plan, factor, and look again where in doubt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from snugly.errors import InputError
from snugly.linalg import exact
from snugly.linalg.factored import Factored
from snugly.linalg.outcome import Outcome
from snugly.linalg.panels import factor_in_panels
from snugly.linalg.plan import Plan, choose
from snugly.linalg.scratch import Scratch
from snugly.linalg.stacks import compute_stack
from snugly.linalg.tiles import factor_in_tiles
from snugly.linalg.whole import factor_whole
from snugly.progress import shown

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from snugly.linalg.sources import Source
    from snugly.units import Size


@dataclass(frozen=True, slots=True)
class Settings:
    """What the caller allows."""

    budget: Size | None = None
    overwrite: bool = False
    scratch: str | os.PathLike[str] | None = None
    progress: Callable[[float], None] | None = None
    compiled: bool = True
    """Whether many small matrices may be compiled for; the determinant itself is then lost."""

    def keeping_input(self) -> Settings:
        """The same, but the input stays as it is."""
        return replace(self, overwrite=False)


def compute(source: Source, settings: Settings) -> Outcome:
    """The determinants of all matrices of a source."""
    overwritable = settings.overwrite and _can_be_overwritten(source)
    budget = settings.budget if settings.budget is not None else _available(source)
    plan = choose(
        source.shape, source.working, budget, overwritable=overwritable, reading=source.reading
    )
    if plan.method == "empty" or source.count == 0:
        return Outcome.empty(source, plan)
    if plan.method in ("closed-form", "batched"):
        outcome = compute_stack(source, plan, compiled=settings.compiled)
    else:
        outcome = _one_by_one(source, plan, settings)
    if plan.method != "in-place" and not outcome.is_certain:
        _look_again(source, outcome, settings, budget)
    return outcome


def _one_by_one(source: Source, plan: Plan, settings: Settings) -> Outcome:
    outcome = Outcome.empty(source, plan)
    title = f"determinant of {source.title}"
    with shown(title, settings.progress) as progress, _Factory(source, plan, settings) as factory:
        for index in range(source.count):

            def report(share: float, index: int = index) -> None:
                progress((index + share) / source.count)

            outcome.put(index, factory.factor(index, report))
    return outcome


class _Factory:
    """What is kept from one matrix of a stack to the next: working memory, the scratch file."""

    def __init__(self, source: Source, plan: Plan, settings: Settings) -> None:
        self._source, self._plan = source, plan
        self._memory: np.ndarray | None = None
        self._scratch = Scratch(int(plan.scratch), settings.scratch) if plan.scratch else None

    def __enter__(self) -> Self:
        if self._scratch is not None:
            self._scratch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._scratch is not None:
            self._scratch.close()

    def factor(self, index: int, progress: Callable[[float], None]) -> Factored:
        source, plan = self._source, self._plan
        if self._scratch is not None and plan.method == "panels":
            shape = (plan.height, plan.width)
            return factor_in_panels(source, index, self._scratch, shape, progress)
        if self._scratch is not None:
            return factor_in_tiles(source, index, self._scratch, side=plan.width, progress=progress)
        if plan.method == "in-place":
            return factor_whole(source, index, source.view(index), filled=True, progress=progress)
        if self._memory is None:
            self._memory = np.empty((source.size, source.size), source.working).T
        return factor_whole(source, index, self._memory, filled=False, progress=progress)


def _look_again(source: Source, outcome: Outcome, settings: Settings, budget: Size | None) -> None:
    """Where the sign is open: float64 for narrower types, then exact arithmetic."""
    left_open = np.flatnonzero(~outcome.certain.reshape(-1))
    for index in map(int, left_open[:_MOST_LOOKED_AT]):
        found, how = _in_float64(source, index, settings, budget), "float64"
        if found is None or not found.certain:
            found, how = _exactly(source, index, budget), "exact"
        if found is not None:
            outcome.put(index, found)
            outcome.note_second_look(how)
    outcome.note_what_is_open(int((~outcome.certain).sum()))


_MOST_LOOKED_AT: Final = 256
"""Matrices of one stack that are computed a second time; each takes up to seconds."""


def _in_float64(
    source: Source, index: int, settings: Settings, budget: Size | None
) -> Factored | None:
    wide = {"float32": np.float64, "complex64": np.complex128}.get(source.working.name)
    if wide is None:
        return None
    wider, one = source.computed_in(np.dtype(wide)), source.shape[-2:]
    try:
        plan = choose(one, wider.working, budget, overwritable=False, reading=wider.reading)
    except InputError:
        return None
    if plan.method in ("closed-form", "batched"):
        return None  # narrow types are computed in float64 there already
    with _Factory(wider, plan, settings) as factory:
        return factory.factor(index, lambda _: None)


def _exactly(source: Source, index: int, budget: Size | None) -> Factored | None:
    """The exact determinant of a small real matrix; zero, if it is, of a larger one."""
    size = source.size
    lanes = exact.lanes_in(budget, size)
    if source.working.kind == "c" or size > exact.LARGEST_SINGULAR or not lanes:
        return None
    matrix = np.empty((size, size), np.float64).T
    source.read(index, 0, size, matrix)
    if size > exact.LARGEST:
        return Factored.zero() if exact.is_singular(matrix) else None
    product = exact.exact_determinant(matrix, lanes)
    if product is not None:
        return Factored(product, 0.0)
    return Factored.zero() if exact.is_singular(matrix) else None


def _can_be_overwritten(source: Source) -> bool:
    array = source.array
    return (
        array is not None
        and array.flags.writeable
        and array.dtype == source.working
        and source.has_contiguous_columns
    )


def _available(source: Source) -> Size | None:
    """The machine's own limit, asked for only where it could matter."""
    matrix = source.size**2 * source.working.itemsize
    if matrix < _WORTH_ASKING:
        return None
    from snugly.devices import host_memory

    # The rest stays for whatever else the program and the machine do.
    return host_memory().bytes.times(0.8)


_WORTH_ASKING: Final = 1 << 28
