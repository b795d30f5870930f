"""patched: the large layers of a `.tflite` model, computed patch by patch.

The first layers of a network for images hold most of its activations. Computed in patches, with
the few rows and columns that neighbours share computed twice, only a part of them exists at a
time. The result is a plain `.tflite` of stock operators: SLICE cuts a patch out, the layers run on
it with the same weights (which are not copied), CONCATENATION puts the outcomes together. Outputs
are the same to the bit where kernels add in the same order for every size of image: all of TFLite
Micro's reference kernels do, and all integer kernels. LiteRT's optimised kernels for floats do not
always: their last bits may differ.

Several runs of layers may be patched one after another, each for itself: that repeats far less
work than one run of all of them. Layers that look at the whole image (a dense layer, a mean) end a
run. Limits: images of four dimensions, sizes that the file declares; only the first subgraph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, SupportsIndex

from snugly.lite.patches_layers import ELEMENTWISE, TYPES, WINDOWS, layers_of
from snugly.lite.patches_search import Search
from snugly.lite.patches_writing import write_plain, write_stage
from snugly.lite.rewriting import Rewriting
from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.structures import HOST
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.lite.patches_layers import Layer
    from snugly.lite.patches_search import Way
    from snugly.readers.tflite import LiteModel
    from snugly.readers.tflite.structures import Target


@dataclass(frozen=True, slots=True)
class MicroNeed:
    """What TFLite Micro needs for a model, predicted."""

    head: Size
    tail: Size
    arena: Size  # the smallest arena with which the interpreter starts


@dataclass(frozen=True, slots=True)
class PatchedLayers:
    """A run of layers that is computed in patches: rows times columns of them."""

    operators: tuple[str, ...]
    output: str  # the tensor that the patches are parts of
    shape: tuple[int, ...]
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Patched:
    """The rewritten model, and what it costs."""

    data: bytes
    before: MicroNeed
    after: MicroNeed
    extra_work: float  # share of the model's multiply-accumulates that are done again
    patches: tuple[PatchedLayers, ...]
    note: str
    safety: str = "same-result"

    @property
    def is_changed(self) -> bool:
        """Whether anything was rewritten."""
        return bool(self.patches) or self.after != self.before


def micro_need(model: LiteModel, target: Target = HOST) -> MicroNeed:
    """Head, tail and smallest arena of a model."""
    plan = plan_micro(model, target)
    return MicroNeed(Size(plan.head), Size(plan.tail), Size(plan.smallest_arena))


def patched(
    model: bytes,
    memory: str | SupportsIndex | None = None,
    *,
    target: Target = HOST,
    least: Literal["arena", "head"] = "arena",
    time_limit: float = 30.0,
) -> Patched:
    """Rewrite a `.tflite` model so that its large layers run patch by patch.

    Args:
        model: the bytes of the file.
        memory: the arena that there is. What fits it with least extra work is chosen; where
            nothing does, the smallest, and the note says so. Without it: the smallest.
        target: what TFLite Micro is compiled for. More operators make a larger tail, so the best
            number of patches depends on it.
        least: what "smallest" means: the whole arena, or its head alone.
        time_limit: seconds for the search; the best found until then is taken.
    """
    budget = None if memory is None else Size(memory)
    rewriting = Rewriting(bytes(model))
    before = micro_need(rewriting.model, target)
    if budget is not None and before.arena <= budget:
        return Patched(bytes(model), before, before, 0.0, (), "the model fits as it is")
    if rewriting.is_bound:
        note = "left as it is: custom operators may depend on the offline memory plan in the file"
        return Patched(bytes(model), before, before, 0.0, (), note)
    layers = layers_of(rewriting)
    search = Search(rewriting, layers, target, time_limit)
    work = sum(choice.work for choice in search.plain)
    best = _best(bytes(model), search, target, budget, least)
    if best is None or _measure(best.need, least) >= _measure(before, least):
        note = _why_not(rewriting, layers, search)
        return Patched(bytes(model), before, before, 0.0, (), note)
    extra = (best.way.work - work) / work if work else 0.0
    return Patched(
        best.data,
        before,
        best.need,
        extra,
        _described(rewriting, best.way),
        _note(rewriting, best, budget, search, extra),
    )


@dataclass(slots=True)
class _Candidate:
    way: Way
    data: bytes
    need: MicroNeed


def _measure(need: MicroNeed, least: str) -> tuple[int, int]:
    return (need.arena, need.head) if least == "arena" else (need.head, need.arena)


def _best(
    model: bytes, search: Search, target: Target, budget: Size | None, least: str
) -> _Candidate | None:
    """The best way, each planned as the interpreter plans it."""
    best: _Candidate | None = None
    seen: set[object] = set()
    for way in search.ways():
        if best is not None and search.is_late():
            break
        if way.key in seen:
            continue
        seen.add(way.key)
        data = _written(model, search.layers, way)
        found = _Candidate(way, data, micro_need(read_tflite(data), target))
        if best is None or _rank(found, budget, least) < _rank(best, budget, least):
            best = found
    return best


def _rank(candidate: _Candidate, budget: Size | None, least: str) -> tuple[int, ...]:
    """Lower is better: what fits comes first, by its work; of what does not, the smallest."""
    if budget is not None and candidate.need.arena <= budget:
        return 0, candidate.way.work, candidate.need.arena
    return 1, *_measure(candidate.need, least), candidate.way.work


def _written(model: bytes, layers: Sequence[Layer], way: Way) -> bytes:
    rewriting = Rewriting(model)
    for choice in way.choices:
        if choice.stage is None:
            write_plain(rewriting, layers[choice.first])
        else:
            write_stage(rewriting, choice.stage, choice.rows, choice.columns)
    return rewriting.finish()


def _described(rewriting: Rewriting, way: Way) -> tuple[PatchedLayers, ...]:
    tensors = rewriting.model.main.tensors
    return tuple(
        PatchedLayers(
            tuple(layer.name for layer in choice.stage.layers),
            tensors[choice.stage.output].name.partition(";")[0],
            tensors[choice.stage.output].shape,
            choice.rows,
            choice.columns,
        )
        for choice in way.choices
        if choice.stage is not None
    )


def _note(
    rewriting: Rewriting, best: _Candidate, budget: Size | None, search: Search, extra: float
) -> str:
    parts: list[str] = []
    if budget is not None and best.need.arena > budget:
        parts.append(
            f"no patches make it fit {budget}: the least arena found is {best.need.arena:,} bytes"
        )
    patches = sum(choice.patches for choice in best.way.choices)
    if patches:
        parts.append(f"{patches} patches, {extra:.1%} more multiply-accumulates")
    if any(layer.folded is not None for layer in search.layers):
        parts.append("PAD operators became the padding of their convolutions where they could")
    if rewriting.model.offline_offsets is not None:
        parts.append("the offline memory plan of the file was for other tensors and is dropped")
    if any(-1 in tensor.signature[1:3] for tensor in rewriting.model.main.tensors):
        parts.append("rows and columns that the file left open are now those that it declares")
    if search.stopped:
        parts.append("the search was stopped by its time limit; more time may find less")
    return "; ".join(parts)


def _why_not(rewriting: Rewriting, layers: Sequence[Layer], search: Search) -> str:
    """Why patches gain nothing: what is largest, and which operator stands there."""
    if not layers:
        return "nothing to patch: the model has no operators"
    worst = max(search.plain, key=lambda choice: choice.live)
    layer = layers[worst.first]
    main = rewriting.model.main
    if layer.kind == "other":
        types = {main.tensors[index].type.name for index in (*layer.inputs, *layer.outputs)}
        if types - TYPES and layer.name in {*WINDOWS, *ELEMENTWISE}:
            names = ", ".join(sorted(name.lower() for name in types - TYPES))
            return (
                f"patches gain nothing: most is live at {layer.name}, and TFLite Micro cannot cut"
                f" tensors of {names}"
            )
        return (
            f"patches gain nothing: most is live at {layer.name}, which cannot be computed from a"
            " part of its input"
        )
    if not search.stages:
        shape = "×".join(map(str, main.tensors[layer.output].shape))
        return (
            f"patches gain nothing: most is live at {layer.name} (output {shape}), and parts,"
            " seams and outcomes together would take as much"
        )
    return (
        f"patches gain nothing: what they save at {layer.name} is less than what the interpreter"
        " keeps for the additional operators"
    )
