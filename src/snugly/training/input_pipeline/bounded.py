"""bounded: the same pipeline inside a budget, with a plan that says what was changed and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, SupportsIndex

from snugly.errors import InputError
from snugly.planning.safety import Safety, harm_of
from snugly.training.input_pipeline.chain import Chain, Link, read_chain
from snugly.training.input_pipeline.functions import is_elementwise, is_stateless
from snugly.training.input_pipeline.predict import (
    PipelinePrediction,
    available_threads,
    inner_shapes,
    pipeline_data,
    predict_stages,
    refuse_endless_cache,
)
from snugly.training.input_pipeline.sizes import resolve_sizes
from snugly.training.input_pipeline.stages import AUTOTUNE, read_stages
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One change: what is done, what it saves, what it costs, and how safe it is."""

    what: str
    saves: Size
    cost: str
    safety: Safety


@dataclass(frozen=True, slots=True)
class Bounded:
    """The bounded dataset, with the plan that made it and what it is predicted to hold."""

    dataset: Any
    plan: tuple[PlannedChange, ...]
    before: PipelinePrediction
    prediction: PipelinePrediction

    def __str__(self) -> str:
        lines = [f"{self.before.peak} → {self.prediction.peak} (predicted)"]
        lines += [
            f"  {change.what}: saves {change.saves}, {change.cost} [{change.safety}]"
            for change in self.plan
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Proposal:
    chain: Chain
    what: str
    cost: str
    safety: Safety


def bounded(  # noqa: PLR0913 - what a prediction needs, all by name
    dataset: Any,
    memory: str | SupportsIndex,
    *,
    allow: str = "same-result",
    sizes: Mapping[str, Any] | None = None,
    sample: int | None = None,
    threads: int | None = None,
) -> Bounded:
    """Rewrite a pipeline so that it is predicted to stay inside a budget of host memory.

    With `same-result` the elements of every epoch are the same; where a seed is given and functions
    draw no random numbers, they also come in the same order. Changes are made one by one, the
    harmless first, until the pipeline fits: shuffle before maps that enlarge, cache before them,
    cast behind the batch, shorter prefetches, fewer parallel calls. `changes-training` lets maps
    that draw random numbers be moved as well, and shrinks shuffle buffers.

    Args:
        dataset: The pipeline.
        memory: The budget. It also becomes tf.data's own `ram_budget` for autotuning.
        allow: The most that a change may do: "same-result", "changes-rounding" or
            "changes-training".
        sizes: As for `predict`, like `sample` and `threads`.
        sample: Likewise.
        threads: Likewise.

    Raises:
        InputError: Nothing allowed brings it under the budget; the least that works is named.
    """
    allowed = harm_of(allow)
    budget = Size(memory)
    stages = read_stages(dataset)
    refuse_endless_cache(stages)
    known = resolve_sizes(stages, sizes or {}, sample)
    shapes = inner_shapes(stages, sample)
    count = threads or available_threads(dataset)
    before = predict_stages(stages, known, shapes, count)
    chain = read_chain(dataset, known, shapes, count)
    chain, plan = _fit(chain, before, budget, allowed)
    return _finished(chain, plan, before, budget)


def bounded_data(result: Bounded) -> dict[str, Any]:
    """The plan as plain data."""
    return {
        "before": pipeline_data(result.before),
        "after": pipeline_data(result.prediction),
        "plan": [
            {
                "what": change.what,
                "saves": int(change.saves),
                "cost": change.cost,
                "safety": change.safety,
                "provenance": "predicted",
            }
            for change in result.plan
        ],
    }


def _fit(
    chain: Chain, before: PipelinePrediction, budget: Size, allowed: int
) -> tuple[Chain, list[PlannedChange]]:
    reached, plan = before, list[PlannedChange]()
    refused: Safety | None = None
    progress = True
    while progress and reached.peak > budget:
        progress = False
        for proposal in _proposals(chain, budget):
            if harm_of(proposal.safety) > allowed:
                refused = refused or proposal.safety
                continue
            after = proposal.chain.predict()
            if after.peak >= reached.peak:
                continue
            saves = reached.peak - after.peak
            plan.append(PlannedChange(proposal.what, saves, proposal.cost, proposal.safety))
            chain, reached, progress = proposal.chain, after, True
            break
    if reached.peak > budget:
        raise InputError(
            f"the least that this pipeline is predicted to hold is {reached.peak}, of which"
            f" {reached.largest.bytes} in {reached.largest.name}; {budget} is given",
            code="SNG558",
            hint=(
                f'allow="{refused}" permits more' if refused else f"give memory={int(reached.peak)}"
            ),
        )
    return chain, plan


def _finished(
    chain: Chain, plan: list[PlannedChange], before: PipelinePrediction, budget: Size
) -> Bounded:
    import tensorflow as tf

    options = tf.data.Options()
    own = chain.options.autotune.ram_budget
    options.autotune.ram_budget = int(budget) if own is None else min(int(budget), own)
    if own is None or own > budget:
        plan.append(
            PlannedChange(
                f"ram_budget of tf.data's autotuning to {budget}",
                Size(0),
                "none: autotuning stops enlarging buffers there",
                "same-result",
            )
        )
    chain = _pinned(chain, plan, budget)
    dataset = chain.build().with_options(options)
    return Bounded(dataset, tuple(plan), before, chain.predict())


def _pinned(chain: Chain, plan: list[PlannedChange], budget: Size) -> Chain:
    """Where autotuning could leave the budget, prefetches of one element, and none added."""
    import tensorflow as tf

    found = chain.predict()
    if found.high <= budget:
        return chain
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    links = [
        link.with_setting("buffer_size", 1)
        if link.stage.kind == "prefetch" and link.get("buffer_size") == AUTOTUNE
        else link
        for link in chain.links
    ]
    pinned = replace(chain.with_links(links), options=chain.options.merge(options))
    after = pinned.predict()
    if after.high >= found.high or after.peak > max(found.peak, budget):
        return chain
    plan.append(
        PlannedChange(
            "prefetch of one element in place of autotuned ones",
            found.high - after.high,
            "less is made ahead of time",
            "same-result",
        )
    )
    return pinned


def _proposals(chain: Chain, budget: Size) -> Iterator[_Proposal]:
    """Changes in the order in which they are tried."""
    for kind in ("shuffle", "cache"):
        yield from _earlier(chain, kind)
    yield from _later_cast(chain)
    yield from _fewer(chain, budget, "prefetch", "buffer_size", "less is made ahead of time")
    yield from _fewer(chain, budget, "map", "parallel", "less is done at once")
    yield from _fewer(chain, budget, "batch", "parallel", "less is done at once")
    yield from _smaller_shuffle(chain, budget)


def _earlier(chain: Chain, kind: str) -> Iterator[_Proposal]:
    """A shuffle or a cache moved before maps, to where elements are smallest."""
    for place, link in enumerate(chain.links):
        if link.stage.kind != kind:
            continue
        target = place
        safety: Safety = "same-result"
        best: tuple[int, int] | None = None
        best_safety = safety
        smallest = chain.element_before(place)
        while target > 0 and chain.links[target - 1].stage.kind in {"map", "prefetch"}:
            target -= 1
            crossed = chain.links[target].stage
            if crossed.kind == "map" and not is_stateless(crossed.dataset._map_func):  # noqa: SLF001
                safety = "changes-training"
            size = chain.element_before(target)
            if size < smallest:
                smallest, best, best_safety = size, (target, size), safety
        if best is None:
            continue
        links = list(chain.links)
        links.insert(best[0], links.pop(place))
        names = ", ".join(one.stage.name for one in chain.links[best[0] : place])
        cost = "none" if kind == "shuffle" else f"{names} run again in every epoch"
        what = f"{link.stage.name} before {names}, on elements of {Size(best[1])}"
        yield _Proposal(chain.with_links(links), what, cost, best_safety)


def _later_cast(chain: Chain) -> Iterator[_Proposal]:
    """A cast moved behind the batch, so that what waits to be batched is smaller."""
    for place in range(len(chain.links) - 1):
        first, second = chain.links[place], chain.links[place + 1]
        if first.stage.kind != "map" or second.stage.kind != "batch":
            continue
        if not is_elementwise(first.stage.dataset._map_func):  # noqa: SLF001
            continue
        links = list(chain.links)
        # One call at a time: a cast of whole batches runs on all threads by itself.
        links[place], links[place + 1] = second, first.with_setting("parallel", 1)
        what = f"{first.stage.name} behind {second.stage.name}"
        yield _Proposal(
            chain.with_links(links), what, "none: whole batches are cast", "same-result"
        )


def _fewer(chain: Chain, budget: Size, kind: str, setting: str, cost: str) -> Iterator[_Proposal]:
    """A smaller number of elements made ahead or at once: the largest that fits, else one."""
    for place, link in enumerate(chain.links):
        old = link.get(setting)
        if link.stage.kind != kind or not isinstance(old, int):
            continue
        start = chain.threads if old == AUTOTUNE else old
        if start <= 1:
            continue
        value = _largest(chain, place, setting, 1, start - 1, budget)
        shown = "AUTOTUNE" if old == AUTOTUNE else old
        what = f"{link.stage.name}: {setting} from {shown} to {value}"
        yield _Proposal(_set(chain, place, setting, value), what, cost, "same-result")


def _smaller_shuffle(chain: Chain, budget: Size) -> Iterator[_Proposal]:
    for place, link in enumerate(chain.links):
        old = link.get("buffer_size")
        if link.stage.kind == "shuffle" and isinstance(old, int) and old > 1:
            value = _largest(chain, place, "buffer_size", 1, old - 1, budget)
            what = f"{link.stage.name}: buffer_size from {old} to {value}"
            yield _Proposal(
                _set(chain, place, "buffer_size", value),
                what,
                "elements are less well mixed; full_shuffle mixes all of them in less",
                "changes-training",
            )


def _set(chain: Chain, place: int, setting: str, value: int) -> Chain:
    links = list[Link](chain.links)
    links[place] = links[place].with_setting(setting, value)
    return chain.with_links(links)


def _largest(  # noqa: PLR0913, PLR0917 - a search between two numbers
    chain: Chain, place: int, setting: str, low: int, high: int, budget: Size
) -> int:
    while low < high:
        middle = (low + high + 1) // 2
        if _set(chain, place, setting, middle).predict().peak <= budget:
            low = middle
        else:
            high = middle - 1
    return low
