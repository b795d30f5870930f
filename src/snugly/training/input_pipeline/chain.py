"""The part of a pipeline that can be made anew, as a plan that is changed before it is built."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from snugly.training.input_pipeline.predict import InnerShapes, PipelinePrediction, predict_stages
from snugly.training.input_pipeline.rebuild import can_rebuild, rebuild
from snugly.training.input_pipeline.stages import KEEPING, Stage, read_stages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.training.input_pipeline.elements import ElementSize
    from snugly.training.input_pipeline.sizes import Sizes


@dataclass(frozen=True, slots=True)
class Link:
    """A stage that may be moved or set otherwise."""

    stage: Stage
    settings: Mapping[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """A setting as it will be."""
        return self.settings.get(name, self.stage.settings.get(name))

    def with_setting(self, name: str, value: Any) -> Link:
        """The same with one setting changed."""
        return replace(self, settings={**self.settings, name: value})


@dataclass(frozen=True, slots=True)
class Chain:
    """A dataset that stays as it is, and the links that follow it."""

    base: Any
    base_stages: tuple[Stage, ...]
    links: tuple[Link, ...]
    options: Any
    sizes: Sizes
    shapes: InnerShapes
    threads: int

    def build(self) -> Any:
        """The dataset of this plan."""
        dataset = self.base
        for link in self.links:
            dataset = rebuild(link.stage, dataset, link.settings)
        return dataset.with_options(self.options)

    def predict(self) -> PipelinePrediction:
        """What the plan would hold."""
        stages = read_stages(self.build())
        known: Sizes = {stage.name: self.sizes[stage.name] for stage in self.base_stages}
        shapes = {name: found for name, found in self.shapes.items() if name in known}
        current = known[self.base_stages[-1].name]
        batches = 1
        rest = [stage for stage in stages[len(self.base_stages) :] if stage.kind != "options"]
        for stage, link in zip(rest, self.links, strict=True):
            current, batches = self._after(link, current, batches)
            known[stage.name] = current
            if link.stage.name in self.shapes:
                shapes[stage.name] = self.shapes[link.stage.name]
        for stage in stages:
            known.setdefault(stage.name, current)
        return predict_stages(stages, known, shapes, self.threads)

    def _after(self, link: Link, current: Any, batches: int) -> tuple[Any, int]:
        """The size of an element behind a link, and how many a moved batch put into one."""
        size, origin = current
        if link.stage.kind in KEEPING:
            return current, batches
        if link.stage.kind == "batch":
            count = int(link.get("batch_size"))
            return (size.times(count), origin), batches * count
        found: ElementSize = self.sizes[link.stage.name][0]
        # A map that stood before the batch and now stands behind it makes whole batches.
        before = self._batched_before(link.stage.name)
        return (found.times(max(batches // before, 1)), self.sizes[link.stage.name][1]), batches

    def _batched_before(self, name: str) -> int:
        """How many elements were batched before a stage in the pipeline as it was written."""
        count = 1
        for link in sorted(self.links, key=lambda link: list(self.sizes).index(link.stage.name)):
            if link.stage.name == name:
                return count
            if link.stage.kind == "batch":
                count *= int(link.get("batch_size"))
        return count

    def with_links(self, links: Sequence[Link]) -> Chain:
        """The same base with other links."""
        return replace(self, links=tuple(links))

    def element_before(self, place: int) -> int:
        """Bytes of the elements that reach a link, in the pipeline as it was written."""
        name = self.links[place].stage.inputs[0]
        return self.sizes[name][0].held


def read_chain(dataset: Any, sizes: Sizes, shapes: InnerShapes, threads: int) -> Chain:
    """Split a pipeline into what stays and what can be made anew."""
    stages = read_stages(dataset)
    by_name = {stage.name: stage for stage in stages}
    links: list[Link] = []
    current = stages[-1]
    while can_rebuild(current) or (current.kind == "options" and len(current.inputs) == 1):
        if current.kind != "options":
            links.append(Link(current))
        current = by_name[current.inputs[0]]
    place = stages.index(current)
    base = stages[: place + 1]
    return Chain(
        current.dataset, base, tuple(reversed(links)), dataset.options(), sizes, shapes, threads
    )
