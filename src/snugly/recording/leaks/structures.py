"""Structures: models, variables, datasets, functions and the like that a loop makes for ever.

Two ways to leak. Those that are kept alive are seen in their numbers. Those that die, but whose
native memory is not given back, are seen in the memory in use, read each time at the same line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from snugly.recording.leaks.creations import (
    COMPILE,
    DATASET,
    ITERATOR,
    LAYER,
    MODEL,
    OPTIMIZER,
    PYTHON_FUNCTION,
    SESSION,
    TABLE,
    TAPE,
    VARIABLE,
)
from snugly.recording.leaks.growth import FEWEST_REPETITIONS, is_steady, steady_slope
from snugly.recording.leaks.leak import Leak
from snugly.recording.leaks.retracing import FUNCTION
from snugly.recording.leaks.source import statement_at
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.recording.leaks.circumstances import Circumstances, Span
    from snugly.recording.leaks.journal import Journal
    from snugly.recording.leaks.populations import Meter, Population

KINDS = {
    MODEL: "model-in-loop",
    LAYER: "layer-in-loop",
    COMPILE: "retracing",
    OPTIMIZER: "optimizer-in-loop",
    PYTHON_FUNCTION: "py-function",
    TABLE: "lookup-table",
    VARIABLE: "variables-in-loop",
    SESSION: "session-in-loop",
    TAPE: "kept-tape",
    DATASET: "dataset-in-loop",
    ITERATOR: "dataset-in-loop",
    FUNCTION: "retracing",
}
"""From what is made to the kind of leak; the first explains those below it in the same loop."""

_WORDS = {
    MODEL: "models",
    LAYER: "layers",
    OPTIMIZER: "optimizers",
    PYTHON_FUNCTION: "Python functions",
    TABLE: "lookup tables",
    VARIABLE: "variables",
    SESSION: "sessions",
    TAPE: "gradient tapes",
    DATASET: "datasets",
    ITERATOR: "dataset iterators",
    FUNCTION: "tf.functions",
}
# What comes along with another thing that the same loop makes and keeps.
_BRINGS = {
    "model-in-loop": {"optimizer-in-loop", "variables-in-loop", "retracing"},
    "optimizer-in-loop": {"variables-in-loop"},
    "dataset-in-loop": {"dataset-in-loop"},
    "variables-in-loop": {"variables-in-loop"},
}
# A layer that is alive is part of a model: many are made in loops, once.
_NEVER_KEPT = {LAYER, COMPILE}
# Growth below this is what TensorFlow 2.21 shows in healthy loops: 1 to 3 KiB for each `fit`,
# `predict` or pass over a dataset. Measured over 45 iterations each.
LEAST_RATE = 8 * 1024
# More repetitions than a cross-validation has folds: there the memory is lost, but the loop ends.
_FEWEST_THAT_DIED = 12


@dataclass(frozen=True, slots=True)
class Suspect:
    """A structure that leaks, and the loop it leaks in."""

    leak: Leak
    rank: int
    spans: frozenset[Span]  # the loops around it
    is_kept: bool


def rate_of(meter: Meter) -> int:
    """Bytes that memory in use rises by at each repetition; 0 where it is no slope."""
    return round(steady_slope(meter.heap) + steady_slope(meter.tensors))


def find_structures(journal: Journal, around: Circumstances, persistent: set[int]) -> list[Suspect]:
    """Everything that is made again and again, and leaks."""
    parts = _parts_of_models(journal)
    with_models = [around.spans(each.way) for each in journal.census.of(MODEL)]
    suspects: list[Suspect] = []
    for rank, made in enumerate(KINDS):
        for population in journal.census.of(made):
            if population.created < FEWEST_REPETITIONS or not around.repeats(population.way):
                continue
            span, spans = around.span(population.way), around.spans(population.way)
            if not around.goes_on(population.first_event, population.last_event, span):
                continue
            if made == LAYER and any(spans & others for others in with_models):
                continue  # a model is made in the same loop, and this is a part of it
            kept = _kept(population, around, parts, persistent)
            leak = kept or _lost(population, around)
            if leak is not None and made == OPTIMIZER and kept is None:
                leak = _recompiled_with(leak, spans, journal, around)
            if leak is not None:
                suspects.append(Suspect(leak, rank, spans, kept is not None))
    return _one_for_each_loop(suspects)


def _kept(
    population: Population, around: Circumstances, parts: set[int], persistent: set[int]
) -> Leak | None:
    if population.kind in _NEVER_KEPT or not is_steady(population.living):
        return None
    alive = population.alive()
    if alive and sum(id(each) in parts for each in alive) * 2 > len(alive):
        return None
    del alive
    holding = population.holding
    name = None
    if holding is not None:
        if holding.is_bounded:
            return None
        reading = around.read(holding.names, keyed=holding.is_keyed)
        name = next((str(each) for each in holding.names if each.is_own), None)
        is_whole = name is not None and not reading.additions  # [make() for … in …]
        if reading.is_emptied or reading.is_used or is_whole:
            return None
    kind = KINDS[population.kind]
    if population.kind == TAPE and id(population) in persistent:
        kind = "persistent-tape"
    rate = rate_of(population.meter)
    words = _WORDS[population.kind]
    kept = f", kept in `{name}`" if name else ""
    grown = f"; memory in use grew by {Size(rate)} each time (measured)" if rate else ""
    message = (
        f"{population.created} {words} were made here and {population.most_alive} were still alive"
        f"{kept}{grown}"
    )
    return _leak(kind, population, around, rate, message, name)


def _lost(  # noqa: PLR0911 - one for each reason not to say it
    population: Population, around: Circumstances
) -> Leak | None:
    """Made and freed, and yet the memory in use grows."""
    if population.created < _FEWEST_THAT_DIED or population.kind == FUNCTION:
        return None
    if population.kind != COMPILE and population.most_alive * 2 > population.created:
        return None  # alive, and excused
    if population.kind == COMPILE and not _is_one_model(population):
        return None
    if population.kind in {TAPE, SESSION, ITERATOR}:
        return None  # these are the least of what a loop makes: blamed only when kept
    rate = rate_of(population.meter)
    if rate < LEAST_RATE:
        return None
    if population.kind == COMPILE:
        return _recompiled(population, around, rate)
    words = _WORDS[population.kind]
    message = (
        f"{population.created} {words} were made here; they are freed, but memory in use grew by"
        f" {Size(rate)} each time (measured): TensorFlow does not give all of it back"
    )
    return _leak(KINDS[population.kind], population, around, rate, message, None)


def _recompiled(population: Population, around: Circumstances, rate: int) -> Leak:
    message = (
        f"compile() was called {population.created} times on one model, and each call makes"
        f" new training functions; memory in use grew by {Size(rate)} each time (measured)"
    )
    return _leak("retracing", population, around, rate, message, None)


def _recompiled_with(
    leak: Leak, spans: frozenset[Span], journal: Journal, around: Circumstances
) -> Leak:
    """An optimizer that a call of compile() in the same loop takes: that call is what grows."""
    for population in journal.census.of(COMPILE):
        if around.spans(population.way) & spans and _is_one_model(population):
            return _recompiled(population, around, leak.bytes_per_iteration)
    return leak


def _leak(  # noqa: PLR0913, PLR0917 - what a leak is made of
    kind: str,
    population: Population,
    around: Circumstances,
    rate: int,
    message: str,
    name: str | None,
) -> Leak:
    loop = around.loop(population.way)
    site = population.site
    return Leak(
        kind=kind,
        path=site.path,
        line=site.line,
        bytes_per_iteration=rate,
        iterations=population.created,
        count=population.most_alive,
        message=message,
        loop=str(loop) if loop is not None and loop != site else None,
        held_by=name,
    )


def _is_one_model(population: Population) -> bool:
    """Whether compile() was called on the same model each time."""
    return len({id(each) for each in population.alive()}) == 1


def _parts_of_models(journal: Journal) -> set[int]:
    """The models that other models are made of."""
    parts: set[int] = set()
    for population in journal.census.of(MODEL):
        for model in population.alive():
            flatten = getattr(model, "_flatten_layers", None)
            if flatten is not None:
                parts |= {id(each) for each in flatten(include_self=False, recursive=True)}
    return parts


def _one_for_each_loop(suspects: list[Suspect]) -> list[Suspect]:
    """Of what one loop makes, the first explains the rest: a model brings its optimizer along."""
    chosen: list[Suspect] = []
    for suspect in sorted(suspects, key=lambda each: (not each.is_kept, each.rank)):
        same = [each for each in chosen if each.spans & suspect.spans]
        explained = any(
            not suspect.is_kept or suspect.leak.kind in _BRINGS.get(each.leak.kind, ())
            for each in same
        )
        if not explained:
            chosen.append(suspect)
    return [_at_first_line(suspect, suspects) for suspect in chosen]


def _at_first_line(suspect: Suspect, suspects: list[Suspect]) -> Suspect:
    """A chain of calls over several lines is one statement: its first line that makes something."""
    leak = suspect.leak
    span = statement_at(leak.path, leak.line)
    lines = [
        each.leak.line
        for each in suspects
        if span is not None
        and each.leak.kind == leak.kind
        and each.leak.path == leak.path
        and span[0] <= each.leak.line <= span[1]
    ]
    first = min([leak.line, *lines])
    if first == leak.line:
        return suspect
    return replace(suspect, leak=replace(leak, line=first))
