"""Kept: tensors, arrays and other data that a program puts aside and never lets go.

What a program collects in order to use it is not a leak, however long the list: a container that
is read as a whole anywhere, that things are taken out of, or that has a limit, is passed
over. So is what is small; a list of floats may be as long as it likes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from snugly.recording.leaks.growth import FEWEST_REPETITIONS, Series, deepest_fall, is_steady
from snugly.recording.leaks.journal import TENSOR
from snugly.recording.leaks.leak import Leak
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.recording.leaks.circumstances import Circumstances, Reading, Span
    from snugly.recording.leaks.containers import Grown
    from snugly.recording.leaks.holders import Name
    from snugly.recording.leaks.journal import Journal
    from snugly.recording.leaks.sites import Site
    from snugly.recording.leaks.usage import Addition
    from snugly.recording.leaks.weight import Weight

LEAST_DATA = 16 * 1024
"""Bytes an iteration of arrays or Python data; a program may well keep less than this on purpose.
A thousand iterations are 16 MiB."""
LEAST_IN_CALLBACK = 1024
"""The same for a Keras callback, whose logs take 200 to 500 bytes an epoch."""
LEAST_USED = 1024 * 1024
"""The same where the program reads the whole of it: it is wanted, but it is large."""


@dataclass(slots=True)
class Kept:
    """A container, or what one line makes, that is suspected to grow for ever."""

    names: tuple[Name, ...]
    keyed: bool
    item: Weight
    count: int
    first_event: int
    last_event: int
    seen_event: int | None  # the last look at it; None: it was seen all the time
    seen_to_grow: bool  # at several looks; else the text must say that it grows
    identity: int | None = None
    created: Site | None = None
    way: tuple[Site, ...] = ()
    iterations: int = 0
    reading: Reading | None = field(default=None)


def find_kept(journal: Journal, around: Circumstances) -> list[tuple[Leak, frozenset[Span]]]:
    """Everything that is put aside and never let go, one leak a line."""
    suspects = [*_from_tensors(journal), *_from_containers(journal)]
    found: dict[tuple[str, int], tuple[Leak, frozenset[Span]]] = {}
    explained: set[int] = set()
    for kept in suspects:
        if kept.identity is not None and kept.identity in explained:
            continue
        verdict = _judge(kept, around)
        if verdict is None:
            continue
        leak = verdict[0]
        if kept.identity is not None:
            explained.add(kept.identity)
        known = found.get((leak.path, leak.line))
        if known is None or known[0].bytes_per_iteration < leak.bytes_per_iteration:
            found[leak.path, leak.line] = verdict
    return [*found.values()]


def _from_tensors(journal: Journal) -> list[Kept]:
    suspects = []
    for population in journal.census.of(TENSOR):
        holding = population.holding
        if holding is None or holding.is_bounded or not is_steady(population.living):
            continue
        suspects.append(
            Kept(
                holding.names,
                holding.is_keyed,
                holding.item,
                population.most_alive,
                population.first_event,
                population.last_event,
                None,
                seen_to_grow=True,
                identity=holding.identity,
                created=population.site,
                way=population.way,
                iterations=population.most_alive,
            )
        )
    # The tensors that weigh most say best what is kept.
    return sorted(suspects, key=lambda kept: -kept.item.bytes)


def _from_containers(journal: Journal) -> list[Kept]:
    suspects = []
    successors = _successors(journal.containers.grown)
    for grown in journal.containers.grown:
        if grown.is_bounded or grown.most < FEWEST_REPETITIONS or not grown.names:
            continue
        if grown.item.structures and not grown.item.tensor_count and not grown.item.arrays:
            continue  # models, variables, datasets are judged where they are made
        if deepest_fall(grown.lengths.points) > grown.most // 4 or id(grown) in successors:
            continue  # a sawtooth
        suspects.append(
            Kept(
                tuple(grown.names),
                grown.keyed,
                grown.item,
                grown.most,
                grown.first_event,
                grown.last_event,
                grown.seen_event,
                seen_to_grow=_was_seen_to_grow(grown),
                identity=grown.identity,
                way=grown.way,
                iterations=grown.most,
            )
        )
    return suspects


def _successors(all_grown: list[Grown]) -> set[int]:
    """Containers of one name that follow one another: each begins anew what the last one was."""
    by_name: dict[Name, list[Grown]] = {}
    for grown in all_grown:
        for name in grown.names:
            by_name.setdefault(name, []).append(grown)
    found: set[int] = set()
    for same in by_name.values():
        same.sort(key=lambda grown: grown.first_event)
        for one, next_one in pairwise(same):
            if next_one.first_event >= one.last_event:
                found |= {id(one), id(next_one)}
    return found


def _was_seen_to_grow(grown: Grown) -> bool:
    """Whether its length rose steadily up to the last time that it rose at all."""
    course = Series([point for point in grown.lengths.points if point[0] <= grown.last_event])
    more_than_twice = grown.growths > 2  # noqa: PLR2004
    return more_than_twice and is_steady(course, fewest=FEWEST_REPETITIONS // 2)


def _judge(kept: Kept, around: Circumstances) -> tuple[Leak, frozenset[Span]] | None:
    own = [name for name in kept.names if name.is_own]
    # What hangs together one by one, a chain for instance, is in no container to read about.
    names = kept.names if kept.identity is not None else ()
    reading = around.read(names, keyed=kept.keyed)
    if reading.is_emptied or (not own and not reading.additions):
        return None
    addition = _addition(kept, reading)
    if addition is None and (not kept.seen_to_grow or kept.created is None):
        return None
    in_callback = any(name.is_callback for name in own) or bool(addition and addition.in_callback)
    if kept.item.bytes < _least(kept, reading, in_callback=in_callback):
        return None
    span = _span(kept, addition, around)
    if addition is not None and addition.function is None and addition.loop is None:
        return None  # a line of a module, outside any loop, is run once
    if not around.goes_on(kept.first_event, kept.last_event, span, seen=kept.seen_event):
        return None
    spans = around.spans(kept.way) | ({span} if span is not None else set())
    return _leak(kept, addition, own, in_callback=in_callback), spans


def _least(kept: Kept, reading: Reading, *, in_callback: bool) -> int:
    if reading.is_used:
        return LEAST_USED
    if kept.item.tensor_count:
        return 0
    return LEAST_IN_CALLBACK if in_callback else LEAST_DATA


def _addition(kept: Kept, reading: Reading) -> Addition | None:
    """The line that adds, nearest behind the line that makes what is added."""
    candidates = [each for each in reading.additions if each.loop or each.function]
    if not candidates:
        return next(iter(reading.additions), None)
    here = kept.created
    if here is None:
        return next((each for each in candidates if each.loop), candidates[0])
    for site in kept.way or (here,):
        behind = [e for e in candidates if e.path == site.path and e.line >= site.line]
        if behind:
            return min(behind, key=lambda each: each.line)
    return candidates[0]


def _span(kept: Kept, addition: Addition | None, around: Circumstances) -> Span | None:
    if addition is not None and addition.loop is not None:
        return (addition.path, *addition.loop)
    return around.span(kept.way) if kept.way else None


def _leak(kept: Kept, addition: Addition | None, own: list[Name], *, in_callback: bool) -> Leak:
    item = kept.item
    if in_callback:
        kind = "kept-by-callback"
    elif item.tensor_count:
        kind = "kept-tensors"
    else:
        kind = "kept-arrays" if item.arrays > item.python else "kept-history"
    path = addition.path if addition is not None else (kept.created.path if kept.created else "")
    line = addition.line if addition is not None else (kept.created.line if kept.created else 0)
    created = kept.created
    elsewhere = created is not None and (created.path, created.line) != (path, line)
    name = next((str(each) for each in own), None)
    holder = f" in `{name}`" if name else ""
    made = f"; made at {created}" if elsewhere else ""
    what = {"kept-tensors": "tensors", "kept-arrays": "arrays", "kept-history": "objects"}
    things = what.get(kind) or ("tensors" if item.tensor_count else "objects")
    return Leak(
        kind=kind,
        path=path,
        line=line,
        bytes_per_iteration=item.bytes,
        iterations=kept.iterations,
        count=kept.count,
        message=(
            f"{kept.count} {things} are kept{holder}, {Size(item.bytes)} more each time"
            f" (measured), and nothing is ever taken out{made}"
        ),
        created=f"{Path(created.path).name}:{created.line}" if created and elsewhere else None,
        held_by=name,
    )
