"""A stage: a run of layers that is computed patch by patch, and what each patch is made of.

The rows and columns that a patch of the last output needs are followed back through the layers.
Where two layers need different parts of one tensor, the larger one is made and cut. A patch is
padded only where the image ends: without a PAD where the kernel's own padding is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from snugly.allocators.micro_arena import aligned
from snugly.lite.patches_layers import CONVOLUTIONS, RANK, Layer, Window, same_padding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.readers.tflite import LiteSubgraph

Range: TypeAlias = "tuple[int, int]"  # half open
Part: TypeAlias = "tuple[Range, Range]"  # rows, columns


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers from `first` up to `last`, not included, whose only outcome is `output`."""

    first: int
    last: int
    layers: tuple[Layer, ...]
    output: int
    axes: dict[int, tuple[int, int]]  # of each tensor, which dimensions are rows and columns


@dataclass(slots=True)
class Step:
    """One operator of a patch. Tensors of the patch are numbered; a whole one is negative."""

    name: Literal["SLICE", "PAD", "PADV2", "layer"]
    layer: Layer | None
    inputs: list[int]  # a number of the patch, or -1 - tensor for a whole tensor of the model
    like: int  # the tensor of the model that the outcome is a part of
    shape: tuple[int, ...]
    bytes: int
    begin: tuple[int, ...] = ()  # of SLICE
    pads: tuple[int, ...] = ()  # of PAD: rows before and after, columns before and after
    padding: int | None = None  # of a layer with a window: SAME or VALID


@dataclass(slots=True)
class Patch:
    """The steps of one patch; step number n makes tensor number n, the last one the outcome."""

    steps: list[Step] = field(default_factory=list[Step])

    def peak(self) -> int:
        """Bytes of the patch's own tensors at the worst moment."""
        last = list(range(len(self.steps)))
        for number, step in enumerate(self.steps):
            for index in step.inputs:
                if index >= 0:
                    last[index] = number
        dying: dict[int, list[int]] = {}
        for number, moment in enumerate(last):
            dying.setdefault(moment, []).append(number)
        live = most = 0
        for number, step in enumerate(self.steps):
            live += aligned(step.bytes)
            most = max(most, live)
            for index in dying.get(number, ()):
                live -= aligned(self.steps[index].bytes)
        return most


class UnpatchableError(Exception):
    """A patch that stock operators cannot express."""


def stage_of(
    layers: Sequence[Layer], first: int, last: int, subgraph: LiteSubgraph
) -> Stage | None:
    """The stage of some layers, or None where they cannot be computed in patches."""
    inside = tuple(layers[first:last])
    if any(layer.kind == "other" for layer in inside):
        return None
    made = {layer.output for layer in inside}
    later = {index for layer in layers[last:] for index in layer.inputs} | {*subgraph.outputs}
    leaving = made & later
    if leaving != {inside[-1].output}:
        return None
    axes: dict[int, tuple[int, int]] = {inside[-1].output: (1, 2)}
    for layer in reversed(inside):
        mine = axes.get(layer.output)
        if mine is None:
            return None  # what it makes is never used
        if layer.kind == "transpose":
            mine = layer.permutation[mine[0]], layer.permutation[mine[1]]
        elif mine != (1, 2) and (layer.kind != "same" or not layer.uniform):
            return None
        for index in layer.inputs:
            if axes.setdefault(index, mine) != mine:
                return None
    return Stage(first, last, inside, inside[-1].output, axes)


def cut(size: int, parts: int) -> list[Range]:
    """A number of rows in nearly equal parts."""
    edges = [size * number // parts for number in range(parts + 1)]
    return list(pairwise(edges))


class Patches:
    """The patches of a stage."""

    def __init__(self, stage: Stage, subgraph: LiteSubgraph) -> None:
        self._stage = stage
        self._subgraph = subgraph
        self._made = {layer.output for layer in stage.layers}
        self._needs: dict[tuple[int, Range], dict[int, Range]] = {}
        self._sizes: dict[tuple[int, Range], tuple[object, ...]] = {}

    def patch(self, part: Part) -> Patch:
        """The steps that make one part of the stage's output."""
        needs = [self.needs(axis, part[axis]) for axis in range(2)]
        return _Building(self._stage, self._subgraph, self._made, needs).build()

    def needs(self, axis: int, part: Range) -> dict[int, Range]:
        """Of each tensor, the rows (or columns) that a part of the output is made from."""
        if (axis, part) not in self._needs:
            found: dict[int, Range] = {self._stage.output: part}
            for layer in reversed(self._stage.layers):
                for index in layer.inputs:
                    low, high = self._source(layer, axis, found[layer.output], index)[0]
                    known = found.get(index, (low, high))
                    found[index] = min(low, known[0]), max(high, known[1])
            self._needs[axis, part] = found
        return self._needs[axis, part]

    def work(self, rows: Sequence[Range], columns: Sequence[Range]) -> int:
        """The multiply-accumulates of all patches."""
        total = 0
        for layer in self._stage.layers:
            if not layer.work:
                continue
            shape = self._subgraph.tensors[layer.output].shape
            extents = [
                sum(high - low for low, high in (self.needs(axis, p)[layer.output] for p in parts))
                for axis, parts in enumerate((rows, columns))
            ]
            total += layer.work * shape[0] * shape[3] * extents[0] * extents[1]
        return total

    def _source(
        self, layer: Layer, axis: int, part: Range, index: int
    ) -> tuple[Range, tuple[int, int]]:
        size = self._subgraph.tensors[index].shape[self._stage.axes[index][axis]]
        return source(layer.windows[axis], part, size)

    def sizes(self, axis: int, part: Range) -> tuple[object, ...]:
        """What two parts share if and only if all that is made for them has the same sizes."""
        if (axis, part) not in self._sizes:
            needs = self.needs(axis, part)
            found: list[object] = []
            for layer in self._stage.layers:
                for index in layer.inputs:
                    (low, high), pads = self._source(layer, axis, needs[layer.output], index)
                    found.append((high - low, needs[index][1] - needs[index][0], pads))
            self._sizes[axis, part] = tuple(found)
        return self._sizes[axis, part]


def source(window: Window, part: Range, size: int) -> tuple[Range, tuple[int, int]]:
    """The rows of an input that lie in the image, and how many of padding are before and after."""
    low, high = window.needed(*part)
    inside = max(low, 0), min(high, size)
    if inside[0] >= inside[1]:
        raise UnpatchableError("a patch lies in the padding as a whole")
    return inside, (max(0, -low), max(0, high - size))


class _Building:
    """One patch in the making."""

    def __init__(
        self,
        stage: Stage,
        subgraph: LiteSubgraph,
        made: set[int],
        needs: Sequence[dict[int, Range]],
    ) -> None:
        self._stage = stage
        self._tensors = subgraph.tensors
        self._made = made
        self._needs = needs
        self._patch = Patch()
        self._numbers: dict[int, int] = {}  # tensor of the model -> number in the patch
        self._cuts: dict[tuple[int, Part], int] = {}

    def build(self) -> Patch:
        for layer in self._stage.layers:
            self._layer(layer)
        return self._patch

    def _whole(self, index: int) -> Part:
        return self._needs[0][index], self._needs[1][index]

    def _shape(self, index: int, part: Part) -> tuple[int, ...]:
        shape = list(self._tensors[index].shape)
        for axis, (low, high) in zip(self._stage.axes[index], part, strict=True):
            shape[axis] = high - low
        return tuple(shape)

    def _step(self, step: Step) -> int:
        size = self._tensors[step.like].type.micro_bits // 8
        for extent in step.shape:
            size *= extent
        step.bytes = size
        self._patch.steps.append(step)
        return len(self._patch.steps) - 1

    def _given(self, index: int, part: Part) -> int:
        """A part of a tensor: the tensor of the patch itself, or a cut from it."""
        inside = index in self._made
        shape = self._shape(index, part)
        if inside and part == self._whole(index):
            return self._numbers[index]
        if not inside and shape == self._tensors[index].shape:
            return -1 - index
        if (index, part) not in self._cuts:
            begin = [0] * RANK
            start = self._whole(index) if inside else ((0, 0), (0, 0))
            for number, axis in enumerate(self._stage.axes[index]):
                begin[axis] = part[number][0] - start[number][0]
            origin = self._numbers[index] if inside else -1 - index
            self._cuts[index, part] = self._step(
                Step("SLICE", None, [origin], index, shape, 0, tuple(begin))
            )
        return self._cuts[index, part]

    def _layer(self, layer: Layer) -> None:
        part = self._whole(layer.output)
        inputs: list[int] = []
        pads: tuple[int, ...] = (0, 0, 0, 0)
        sizes: tuple[int, int] = (0, 0)
        for index in layer.inputs:
            found = [
                source(
                    layer.windows[axis],
                    part[axis],
                    self._tensors[index].shape[self._stage.axes[index][axis]],
                )
                for axis in range(2)
            ]
            rows, columns = found[0][0], found[1][0]
            inputs.append(self._given(index, (rows, columns)))
            pads = (*found[0][1], *found[1][1])
            sizes = rows[1] - rows[0], columns[1] - columns[0]
        shape = self._shape(layer.output, part)
        padding = None
        if layer.kind == "window":
            inputs, padding = self._windowed(layer, inputs, pads, sizes)
        elif layer.kind == "pad" and not any(pads) and self._keeps_channels(layer):
            self._numbers[layer.output] = self._same(layer, inputs[0], shape)
            return
        step = Step("layer", layer, inputs, layer.output, shape, 0, (), pads, padding)
        self._numbers[layer.output] = self._step(step)

    def _keeps_channels(self, layer: Layer) -> bool:
        image, padded = self._tensors[layer.inputs[0]].shape, self._tensors[layer.output].shape
        return (image[0], image[3]) == (padded[0], padded[3])

    def _same(self, layer: Layer, number: int, shape: tuple[int, ...]) -> int:
        """A PAD that pads nothing here is left out, unless the patch would have no step."""
        if number >= 0 and layer.output != self._stage.output:
            return number
        return self._step(Step("layer", layer, [number], layer.output, shape, 0, (), (0,) * 4))

    def _windowed(
        self, layer: Layer, inputs: list[int], pads: tuple[int, ...], sizes: tuple[int, int]
    ) -> tuple[list[int], int]:
        """The input, padded where it must be, and the kernel's own padding."""
        if not any(pads):
            return inputs, 1
        own = tuple(
            number
            for size, window in zip(sizes, layer.windows, strict=True)
            for number in same_padding(size, window)
        )
        if own == pads:
            return inputs, 0
        if layer.name == "AVERAGE_POOL_2D":  # its padding does not count, a PAD's would
            raise UnpatchableError("an average over the edge of the image")
        shape = list(self._shape_of_input(layer, sizes))
        for axis in range(2):
            shape[axis + 1] += pads[2 * axis] + pads[2 * axis + 1]
        name = "PAD" if layer.name in CONVOLUTIONS else "PADV2"
        step = Step(name, None, [inputs[0]], layer.inputs[0], tuple(shape), 0, (), pads)
        return [self._step(step)], 1

    def _shape_of_input(self, layer: Layer, sizes: tuple[int, int]) -> tuple[int, ...]:
        shape = self._tensors[layer.inputs[0]].shape
        return shape[0], *sizes, shape[3]
