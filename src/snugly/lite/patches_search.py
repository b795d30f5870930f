"""Which layers to compute in patches, and in how many: searched by what is live at once.

A model is a row of layers. From each place in it one may go on with one layer, computed at once,
or with a stage, computed in patches; every way through has a largest live set, extra work and
structures that the interpreter keeps. For each bound on the live set the cheapest way is found
(shortest path). What is live is a lower bound of TFLite Micro's head, which its planner may miss;
so the ways found here are planned for real by whoever asks. The search ends by how much was looked
at, never by the clock: the same model gives the same ways on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from snugly.allocators.micro_arena import aligned
from snugly.lite.patches_stage import Patches, Stage, UnpatchableError, cut, stage_of
from snugly.lite.patches_writing import is_padded_by_kernel
from snugly.readers.tflite.micro_kernels import KERNELS
from snugly.readers.tflite.structures import size_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from snugly.lite.patches_layers import Layer
    from snugly.lite.patches_stage import Patch
    from snugly.lite.rewriting import Rewriting
    from snugly.readers.tflite.structures import Target

PARTS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 10)
"""Into how many rows or columns; TFLite Micro joins ten tensors at most (kMaxInputNum)."""
MOST_PATCHES: Final = 64
LONGEST_STAGE: Final = 48
MOST_WORK: Final = 2.0  # a stage may do so many times the work of its layers
MOST_BOUNDS: Final = 48
SHORT_MODEL: Final = 24  # layers
MOST_LOOKED: Final = 6_000_000
"""Layers of patches that are looked at, about; of MobileNetV2, with 105 layers, 1.3 million."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How one layer, or one stage, is computed, and what that takes."""

    first: int
    last: int
    stage: Stage | None
    rows: int
    columns: int
    live: int  # bytes at the worst moment
    work: int  # multiply-accumulates
    kept: int  # bytes of structures in the tail, about

    @property
    def patches(self) -> int:
        """How many patches; 0 for a layer computed at once."""
        return self.rows * self.columns if self.stage else 0


@dataclass(slots=True)
class Way:
    """A way through the whole model."""

    choices: list[Choice] = field(default_factory=list[Choice])

    @property
    def key(self) -> tuple[tuple[int, int, int, int], ...]:
        """What makes it the way it is."""
        return tuple(
            (choice.first, choice.last, choice.rows, choice.columns)
            for choice in self.choices
            if choice.stage
        )

    @property
    def work(self) -> int:
        """All multiply-accumulates."""
        return sum(choice.work for choice in self.choices)


class Search:
    """The choices of a model."""

    def __init__(
        self,
        rewriting: Rewriting,
        layers: Sequence[Layer],
        target: Target,
        *,
        most: int = MOST_LOOKED,
    ) -> None:
        self._rewriting = rewriting
        self.layers = layers
        self._target = target
        self._main = rewriting.model.main
        self._left = most
        self._births, self._deaths = self._lives()
        self._structures: dict[str, int] = {}
        self.plain = [self._plain(number) for number in range(len(layers))]
        self.stages: list[Choice] = []
        self.stopped = False
        self._find_stages()

    # --- what is live

    def _lives(self) -> tuple[dict[int, int], dict[int, int]]:
        births = dict.fromkeys((index for index in self._main.inputs if index >= 0), -1)
        deaths: dict[int, int] = dict.fromkeys(births, -1)
        for number, layer in enumerate(self.layers):
            for index in layer.inputs:
                deaths[index] = number
            for index in layer.outputs:
                if index >= 0:
                    births.setdefault(index, number)
                    deaths.setdefault(index, number)
        for index in self._main.outputs:
            if index in births:
                deaths[index] = len(self.layers)
        return births, deaths

    def _bytes(self, index: int) -> int:
        tensor = self._main.tensors[index]
        return 0 if tensor.is_constant or tensor.is_variable else aligned(tensor.micro_bytes)

    def _across(self, number: int, until: int) -> int:
        """Bytes made before a layer and used by layer `until` or later."""
        return sum(
            self._bytes(index)
            for index, birth in self._births.items()
            if birth < number and self._deaths[index] >= until
        )

    def _plain(self, number: int) -> Choice:
        layer = self.layers[number]
        own = sum(self._bytes(index) for index in layer.outputs if index >= 0)
        live = self._across(number, number) + own
        work = layer.work * (self._main.tensors[layer.output].elements if layer.work else 0)
        if layer.folded is not None and not is_padded_by_kernel(self._rewriting, layer):
            padded = self._bytes(self._main.operators[layer.folded].outputs[0])
            live = padded + max(
                self._across(number, number), self._across(number, number + 1) + own
            )
        return Choice(number, number + 1, None, 1, 1, live, work, 0)

    # --- stages

    def _find_stages(self) -> None:
        ends = self._ends()
        floor = max(
            (choice.live for choice in self.plain if self.layers[choice.first].kind == "other"),
            default=0,
        )
        for first in ends:
            for last in ends:
                if not first < last <= first + LONGEST_STAGE:
                    continue
                if max(choice.live for choice in self.plain[first:last]) <= floor:
                    continue  # nothing to gain
                if self._left <= 0:
                    self.stopped = True
                    return
                self._left -= len(self.layers)
                stage = stage_of(self.layers, first, last, self._main)
                if stage is not None:
                    self.stages += _undominated(self._choices(stage))

    def _ends(self) -> list[int]:
        """Where a stage may begin or end: where little passes from one layer to the next.

        In a short model everywhere; in a longer one where less passes than on either side, and
        where layers that can be patched meet others.
        """
        count = len(self.layers)
        if count <= SHORT_MODEL:
            return list(range(count + 1))
        passing = [self._across(number, number) for number in range(count + 1)]
        other = [True, *(layer.kind == "other" for layer in self.layers), True]
        return [
            number
            for number in range(count + 1)
            if other[number]
            or other[number + 1]
            or passing[number] <= min(passing[number - 1], passing[number + 1])
        ]

    def _choices(self, stage: Stage) -> Iterator[Choice]:
        _, height, width, _ = self._main.tensors[stage.output].shape
        before = self._across(stage.first, stage.first)
        after = self._across(stage.first, stage.last)
        plain = max(choice.live for choice in self.plain[stage.first : stage.last])
        patches = Patches(stage, self._main)
        measured: dict[tuple[object, ...], tuple[int, int]] = {}
        least = sum(choice.work for choice in self.plain[stage.first : stage.last])
        for rows, columns in _grids(height, width):
            self._left -= (rows + columns) * len(stage.layers)
            try:
                work = patches.work(cut(height, rows), cut(width, columns))
                if work > MOST_WORK * least:
                    continue
                choice = self._measured(stage, patches, measured, (rows, columns), (before, after))
            except UnpatchableError:
                continue
            if choice.live < plain:
                yield choice

    def _measured(
        self,
        stage: Stage,
        patches: Patches,
        measured: dict[tuple[object, ...], tuple[int, int]],
        grid: tuple[int, int],
        across: tuple[int, int],
    ) -> Choice:
        shape = self._main.tensors[stage.output].shape
        pixel = shape[0] * shape[3] * self._main.tensors[stage.output].type.micro_bits // 8
        live = kept = 0
        joined = 0  # bytes of the strips that are done
        columns = cut(shape[2], grid[1])
        for row in cut(shape[1], grid[0]):
            strip = 0
            for column in columns:
                key = (patches.sizes(0, row), patches.sizes(1, column))
                if key not in measured:
                    patch = patches.patch((row, column))
                    measured[key] = patch.peak(), self._kept(patch)
                peak, more_kept = measured[key]
                live = max(live, across[0] + joined + strip + peak)
                kept += more_kept
                strip += aligned(pixel * (row[1] - row[0]) * (column[1] - column[0]))
            whole = aligned(pixel * (row[1] - row[0]) * shape[2])
            if grid[1] > 1:
                live = max(live, across[1] + joined + strip + whole)
            joined += whole
        if grid[0] > 1:
            live = max(live, across[1] + joined + self._bytes(stage.output))
        work = patches.work(cut(shape[1], grid[0]), columns)
        return Choice(stage.first, stage.last, stage, *grid, live, work, kept)

    def _kept(self, patch: Patch) -> int:
        """What the interpreter keeps for the operators of a patch."""
        total = 0
        for step in patch.steps:
            name = step.name if step.layer is None else step.layer.name
            if name not in self._structures:
                self._structures[name] = self._kept_for(name)
            total += self._structures[name]
            if "CONV" in name:
                total += 2 * aligned(4 * step.shape[-1])
        return total

    def _kept_for(self, name: str) -> int:
        sizes = [
            size_of(structure, self._target)
            for structure in KERNELS.get(name, (None, None))
            if structure is not None
        ]
        own = size_of("NodeAndRegistration", self._target) + size_of(
            "TfLiteEvalTensor", self._target
        )
        return own + sum(aligned(size) for size in sizes)

    # --- ways

    def ways(self) -> Iterator[Way]:
        """For each bound on what is live, the ways that spare most work, and most of the tail."""
        lives = sorted({choice.live for choice in (*self.plain, *self.stages)})
        top = max((choice.live for choice in self.plain), default=0)
        bounds = [bound for bound in lives[self._lowest(lives) :] if bound <= top]
        # The lowest bounds densely, since the best of all are among them; the others by samples.
        step = max(1, -(-len(bounds) // MOST_BOUNDS))
        for bound in (*bounds[:MOST_BOUNDS], *bounds[MOST_BOUNDS::step]):
            for spare in ("work", "kept"):
                way = self._way(bound, spare)
                if way is not None:
                    yield way

    def _lowest(self, lives: Sequence[int]) -> int:
        low, high = 0, len(lives) - 1
        while low < high:
            middle = (low + high) // 2
            if self._way(lives[middle], "work") is None:
                low = middle + 1
            else:
                high = middle
        return low

    def _way(self, bound: int, spare: str) -> Way | None:
        count = len(self.layers)
        best: list[tuple[float, Choice | None] | None] = [None] * (count + 1)
        best[0] = (0, None)
        starting: dict[int, list[Choice]] = {}
        for choice in (*self.plain, *self.stages):
            if choice.live <= bound:
                starting.setdefault(choice.first, []).append(choice)
        for number in range(count):
            here = best[number]
            if here is None:
                continue
            for choice in starting.get(number, ()):
                # What is not spared decides between equals.
                cost = choice.work + choice.kept / 1e6
                if spare == "kept":
                    cost = choice.kept + choice.work / 1e12
                there = best[choice.last]
                if there is None or here[0] + cost < there[0]:
                    best[choice.last] = (here[0] + cost, choice)
        return _traced(best)


def _traced(best: Sequence[tuple[float, Choice | None] | None]) -> Way | None:
    if best[-1] is None:
        return None
    way = Way()
    number = len(best) - 1
    while number:
        reached = best[number]
        assert reached is not None
        assert reached[1] is not None
        way.choices.insert(0, reached[1])
        number = reached[1].first
    return way


def _grids(height: int, width: int) -> Iterator[tuple[int, int]]:
    """Rows only, columns only, and what is nearly square."""
    for rows in PARTS:
        for columns in PARTS:
            if rows > height or columns > width or not 1 < rows * columns <= MOST_PATCHES:
                continue
            if 1 in {rows, columns} or abs(rows - columns) <= 2:  # noqa: PLR2004
                yield rows, columns


def _undominated(choices: Iterator[Choice]) -> list[Choice]:
    """Without those that are worse than another in everything."""
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda one: (one.live, one.work, one.kept)):
        if not any(other.work <= choice.work and other.kept <= choice.kept for other in kept):
            kept.append(choice)
    return kept
