"""Judging: from all that was seen to the leaks that are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.recording.leaks.circumstances import Circumstances
from snugly.recording.leaks.growth import FEWEST_REPETITIONS, is_steady, steady_slope
from snugly.recording.leaks.kept import find_kept
from snugly.recording.leaks.leak import Leak
from snugly.recording.leaks.retracing import FUNCTION, PYTHON_VALUE, Traces
from snugly.recording.leaks.structures import LEAST_RATE, Suspect, find_structures, rate_of
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.recording.leaks.circumstances import Span
    from snugly.recording.leaks.graphs import Additions, Graphs, Growth
    from snugly.recording.leaks.journal import Journal
    from snugly.recording.leaks.retracing import Retracings
    from snugly.recording.leaks.tapes import Tapes

# A function made anew costs time at each turn, though TensorFlow 2.21 frees it: 0.3 KB are left.
_FEWEST_NEW_FUNCTIONS = 12
# Memory that nothing explains: what caches of compiled kernels take for each new shape is less.
_LEAST_UNEXPLAINED = 256 * 1024
_FEWEST_UNEXPLAINED = 16
_MOST_VALUES_SHOWN = 3
_MOST_LINES = 8

Found = tuple[Leak, "frozenset[Span]"]
"""A leak, and the loops around it."""


def judge(journal: Journal, retracings: Retracings, graphs: Graphs, tapes: Tapes) -> list[Leak]:
    """The leaks, largest first."""
    around = Circumstances(journal)
    structures = find_structures(journal, around, tapes.persistent)
    certain: list[Found] = [
        *_retraced(retracings, around),
        *_grown_graphs(graphs, around),
        *_recorded(tapes, around),
        *find_kept(journal, around),
        *((each.leak, each.spans) for each in structures if each.is_kept),
    ]
    leaks = certain + _unexplained([s for s in structures if not s.is_kept], certain)
    leaks += _made_anew(journal, retracings, around, leaks)
    if not leaks:
        leaks = _native(journal, around)
    return _sorted(leaks)


def _sorted(found: list[Found]) -> list[Leak]:
    unique: dict[tuple[str, str, int], Leak] = {}
    for leak, _ in found:
        key = (leak.kind, leak.path, leak.line)
        if key not in unique or leak.bytes_per_iteration > unique[key].bytes_per_iteration:
            unique[key] = leak
    return sorted(unique.values(), key=lambda leak: (-leak.bytes_per_iteration, leak.line))


def _unexplained(lost: list[Suspect], certain: list[Found]) -> list[Found]:
    """Structures that are blamed for memory in use, where nothing certain explains it."""
    found: list[Found] = []
    for suspect in lost:
        explained = sum(
            leak.bytes_per_iteration
            for leak, spans in certain
            if not spans or spans & suspect.spans
        )
        if suspect.leak.bytes_per_iteration > 2 * explained + LEAST_RATE:
            found.append((suspect.leak, suspect.spans))
    return found


def _retraced(retracings: Retracings, around: Circumstances) -> list[Found]:
    found: list[Found] = []
    for traces in retracings.all:
        population = traces.population
        if population is None:
            continue
        traces.series.add(traces.calls, traces.traces)
        compiled = len(traces.shapes) > traces.traces + FEWEST_REPETITIONS
        series = traces.compiled if compiled else traces.series
        count = len(traces.shapes) if compiled else traces.traces
        if count < FEWEST_REPETITIONS or not is_steady(series):
            continue
        rate = rate_of(population.meter)
        site = traces.sites.most_common(1)[0][0]
        verb = "compiled" if compiled else "traced"
        size = f"; memory in use grew by {Size(rate)} each time (measured)" if rate else ""
        message = f"`{traces.name}` was {verb} {count} times: {changed(traces)}{size}"
        leak = Leak(
            kind="recompiling" if compiled else "retracing",
            path=site.path,
            line=site.line,
            bytes_per_iteration=rate,
            iterations=traces.calls,
            count=count,
            message=message,
        )
        found.append((leak, around.spans(population.way)))
    return found


def changed(traces: Traces) -> str:
    """Which arguments differed between the traces of a function, and how."""
    names = list(dict.fromkeys(name for each in traces.signatures for name in each))
    parts: list[str] = []
    for name in names:
        values = list(dict.fromkeys(each.get(name, "absent") for each in traces.signatures))
        if len(values) > 1:
            parts.append(f"{name} was {_list(values)}")
    return "; ".join(parts) or "none of its arguments changed, so something around it did"


def _list(values: list[str]) -> str:
    """The first few, with what they have in common said once."""
    for common in (PYTHON_VALUE, *{value.partition(" 0x")[0] for value in values}):
        if all(value.startswith(f"{common} ") for value in values):
            if common != PYTHON_VALUE:
                return f"another {common.removeprefix('the ')} each time"
            shown = [value.removeprefix(f"{common} ") for value in values[:_MOST_VALUES_SHOWN]]
            return f"{common} {', '.join(shown)}{', …' if len(values) > len(shown) else ''}"
    shown = values[:_MOST_VALUES_SHOWN]
    return ", ".join([*shown, "…"] if len(values) > len(shown) else shown)


def _made_anew(
    journal: Journal, retracings: Retracings, around: Circumstances, certain: list[Found]
) -> list[Found]:
    """Functions that are made and traced in every turn of a loop, and then dropped."""
    explained = [spans for leak, spans in certain if leak.kind in {"model-in-loop", "retracing"}]
    found: list[Found] = []
    for population in journal.census.of(FUNCTION):
        traced = retracings.traced(population)
        span, spans = around.span(population.way), around.spans(population.way)
        if min(population.created, traced) < _FEWEST_NEW_FUNCTIONS:
            continue
        if any(spans & others for others in explained):
            continue
        if not around.repeats(population.way):
            continue
        if not around.goes_on(population.first_event, population.last_event, span):
            continue
        rate = rate_of(population.meter)
        size = f"grew by {Size(rate)} each time (measured)" if rate >= LEAST_RATE else "hardly grew"
        leak = Leak(
            kind="retracing",
            path=population.site.path,
            line=population.site.line,
            bytes_per_iteration=rate,
            iterations=population.created,
            count=traced,
            message=(
                f"a new tf.function was made here {population.created} times and traced {traced}"
                f" times: each is another function to TensorFlow; memory in use {size}"
            ),
        )
        found.append((leak, spans))
    return found


def _grown_graphs(graphs: Graphs, around: Circumstances) -> list[Found]:
    found: list[Found] = []
    for growth in graphs.all:
        if growth.runs < FEWEST_REPETITIONS:
            continue
        steady: list[Additions] = []
        for additions in growth.sites.values():
            additions.series.add(growth.runs, additions.population.created)
            if is_steady(additions.series):
                steady.append(additions)
        found += [_grown_graph(each, growth, steady, around) for each in steady[:_MOST_LINES]]
    return found


def _grown_graph(
    additions: Additions, growth: Growth, steady: list[Additions], around: Circumstances
) -> Found:
    """One line that adds operations; what a turn costs is shared out by their number."""
    population = additions.population
    share = additions.operations / sum(each.operations for each in steady)
    rate = round(rate_of(population.meter) * share)
    size = f"; memory in use grew by {Size(rate)} each time (measured)" if rate else ""
    leak = Leak(
        kind="growing-graph",
        path=population.site.path,
        line=population.site.line,
        bytes_per_iteration=rate,
        iterations=population.created,
        count=additions.operations,
        message=(
            f"{additions.operations} operations were added to one graph here, between"
            f" {growth.runs} runs of its session{size}"
        ),
    )
    return leak, around.spans(population.way)


def _recorded(tapes: Tapes, around: Circumstances) -> list[Found]:
    found: list[Found] = []
    for recording in tapes.recordings:
        if recording.turns < FEWEST_REPETITIONS or not is_steady(recording.series):
            continue
        how = (
            f"entered {recording.turns} times: it adds to what it recorded before"
            if recording.reenters
            else f"asked for gradients {recording.turns} times while it went on recording"
        )
        population = recording.population
        rate = rate_of(population.meter)
        size = f"; memory in use grew by {Size(rate)} each time (measured)" if rate else ""
        leak = Leak(
            kind="persistent-tape",
            path=population.site.path,
            line=population.site.line,
            bytes_per_iteration=rate,
            iterations=recording.turns,
            count=recording.turns,
            message=f"this persistent gradient tape was {how}{size}",
        )
        found.append((leak, around.spans(population.way)))
    return found


def _native(journal: Journal, around: Circumstances) -> list[Found]:
    """Memory in use that grows steadily at a line that nothing we know of explains."""
    if journal.caches:
        return []  # a dataset that caches grows for a whole epoch, and is meant to
    best: Found | None = None
    for visit in journal.visits.values():
        if visit.turns < _FEWEST_UNEXPLAINED:
            continue
        rate = round(steady_slope(visit.meter.heap) + steady_slope(visit.meter.tensors))
        if rate < _LEAST_UNEXPLAINED:
            continue
        span = around.span((visit.site,))
        if not around.goes_on(visit.first_event, visit.last_event, span):
            continue
        leak = Leak(
            kind="native",
            path=visit.site.path,
            line=visit.site.line,
            bytes_per_iteration=rate,
            iterations=visit.turns,
            count=0,
            message=(
                f"memory in use grew by {Size(rate)} at each of {visit.turns} visits of this line"
                " (measured), in nothing that Python can see: look at what is called here"
            ),
        )
        if best is None or rate > best[0].bytes_per_iteration:
            best = (leak, around.spans((visit.site,)))
    return [best] if best is not None else []
