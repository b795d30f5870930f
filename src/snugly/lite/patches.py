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
from snugly.lite.patches_ranking import EFFORT, MicroNeed, Wanted, best_of, micro_need
from snugly.lite.patches_search import Search
from snugly.lite.rewriting import Rewriting
from snugly.readers.tflite.structures import HOST
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.lite.patches_layers import Layer
    from snugly.lite.patches_ranking import Candidate, Planned
    from snugly.lite.patches_search import Way
    from snugly.readers.tflite.structures import Target


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


def patched(  # noqa: PLR0913 - what can be said of patches, all but two by name
    model: bytes,
    memory: str | SupportsIndex | None = None,
    *,
    target: Target = HOST,
    least: Literal["arena", "head"] = "arena",
    planned: Planned = "interpreter",
    effort: int = EFFORT,
) -> Patched:
    """Rewrite a `.tflite` model so that its large layers run patch by patch.

    Args:
        model: the bytes of the file.
        memory: the arena that there is. What fits it with least extra work is chosen; where
            nothing does, the smallest, and the note says so. Without it: the smallest.
        target: what TFLite Micro is compiled for. More operators make a larger tail, so the best
            number of patches depends on it.
        least: what "smallest" means: the whole arena, or its head alone.
        planned: who will say where tensors lie, by which the ways are ranked: the interpreter
            itself, or an offline plan ("packed" or "overlapping") that the caller writes.
        effort: how many ways to patch are planned, where a plan follows. The same model and the
            same effort give the same answer anywhere, and more effort never a worse one.
    """
    budget = None if memory is None else Size(memory)
    rewriting = Rewriting(bytes(model))
    before = micro_need(rewriting.model, target)
    if budget is not None and before.arena <= budget:
        return Patched(bytes(model), before, before, 0.0, (), "the model fits as it is")
    if rewriting.model.is_bound:
        note = "left as it is: custom operators may depend on the offline memory plan in the file"
        return Patched(bytes(model), before, before, 0.0, (), note)
    layers = layers_of(rewriting)
    search = Search(rewriting, layers, target)
    work = sum(choice.work for choice in search.plain)
    wanted = Wanted(target, budget, least, planned)
    best = best_of(bytes(model), search, wanted, effort=effort)
    if best is None or wanted.measure(best.need) >= wanted.measure(before):
        note = _why_not(rewriting, layers, search)
        return Patched(bytes(model), before, before, 0.0, (), note)
    extra = (best.way.work - work) / work if work else 0.0
    return Patched(
        best.data,
        before,
        best.need,
        extra,
        _described(rewriting, best.way),
        _note(rewriting, best, wanted, search, extra),
    )


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
    rewriting: Rewriting, best: Candidate, wanted: Wanted, search: Search, extra: float
) -> str:
    parts: list[str] = []
    budget, planned = wanted.budget, wanted.planned  # where a plan follows, the least is not known
    if budget is not None and best.need.arena > budget and planned == "interpreter":
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
        parts.append("the model has more ways to patch than were looked at")
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
