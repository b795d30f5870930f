"""A Jacobian as Dask arrays: cut into blocks that workers compute when somebody asks for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.jacobians import on_workers
from snugly.jacobians.pieces import Piece, lines_of_a_piece, stretch
from snugly.jacobians.settling import settle
from snugly.jacobians.subject import Leaf, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.jacobians.known import Known
    from snugly.jacobians.on_cluster import Crew
    from snugly.jacobians.on_workers import Parcel
    from snugly.jacobians.plan import Plan, Portion, Request

_SHARE: Final = 4
"""A block with the zeros of other examples may take this part of a worker's room."""


@dataclass(frozen=True, slots=True)
class Form:
    """The shape that a block of one output by one input is given."""

    rows: tuple[int, ...]
    """Of the output, without the axis of examples where those do not mix."""
    columns: tuple[int, ...]
    dtype: np.dtype[Any]
    skip: int = 0
    """Examples at the beginning that another block has."""
    total: int = 0
    """All examples, where the zeros between them are part of the block; 0 where they are not."""
    example: int = 0


def lazily_on(
    crew: Crew, about: Known, request: Request, leaves: Sequence[Any], narrow: Any
) -> tuple[Plan, list[list[Any]]]:
    """The plan, and a lazy array for each output and each input."""
    from snugly.engines.arrays import shared
    from snugly.jacobians.on_cluster import pack_parcel

    plan = crew.plan(lambda: settle(about, request, leaves, narrow))
    if plan.portions[0].lines.examples and request.whole and not _zeros_fit(crew, about, plan):
        plan = crew.plan(lambda: about.plan(request, leaves, narrow))
    whole = request.whole or not plan.portions[0].lines.examples
    blocks = [_block(portion, plan, crew, whole=whole) for portion in plan.portions]
    lengths = [math.prod(block) for block in blocks]
    parcel = pack_parcel(crew, about, plan, leaves, lengths, whole=whole, narrow=narrow)
    package = shared(crew.engine, parcel)
    outputs, sources = about.subject.outputs, about.subject.sources
    rows: list[list[Any]] = [[None] * len(sources) for _ in outputs]
    for number, (portion, block) in enumerate(zip(plan.portions, blocks, strict=True)):
        made = _Made(about, plan, portion, number, block, whole=whole, narrow=narrow)
        for across, array in enumerate(made.arrays(package)):
            if portion.lines.mode == "reverse":
                rows[portion.lines.leaf][across] = array
            else:
                rows[across][portion.lines.leaf] = array
    return plan, rows


def give_block(parcel: Parcel, piece: Piece, forms: Sequence[Form]) -> list[np.ndarray]:
    """In a worker: a piece, each part in the shape it has in the result."""
    mode = parcel.portions[piece.portion].lines.mode
    return [
        _formed(values, form, mode).astype(form.dtype, copy=False)
        for values, form in zip(on_workers.give_piece(parcel, piece), forms, strict=True)
    ]


def _formed(values: np.ndarray, form: Form, mode: str) -> np.ndarray:
    apart = values.ndim == 3  # noqa: PLR2004 - lines, examples, numbers
    if not apart:
        found = values if mode == "reverse" else values.T
        return found.reshape((*form.rows, *form.columns))
    order = (1, 0, 2) if mode == "reverse" else (1, 2, 0)
    found = values.transpose(order)[form.skip :].reshape((-1, *form.rows, *form.columns))
    if not form.total:
        return found
    rows, columns = math.prod(form.rows), math.prod(form.columns)
    dense = np.zeros((len(found), rows, form.total, columns), values.dtype)
    for number, block in enumerate(found):
        dense[number, :, form.example + form.skip + number] = block.reshape(rows, columns)
    return dense.reshape((len(found), *form.rows, form.total, *form.columns))


@dataclass(frozen=True, slots=True)
class _Made:
    """The arrays of one portion, in the making."""

    about: Known
    plan: Plan
    portion: Portion
    number: int
    block: tuple[int, ...]
    whole: bool
    narrow: Any

    def arrays(self, package: Any) -> list[Any]:
        """A lazy array for each tensor across the lines."""
        from snugly.engines.arrays import joined, parts_of

        lines, across = self.portion.lines, self.portion.lines.across
        along = _within(lines.along, lines.examples)
        grid = [extent // step for extent, step in zip(along, self.block, strict=True)]
        starts = list(self.plan.starts())
        length = math.prod(self.block)
        cells = [np.empty((len(starts), *grid), object) for _ in across]
        for place in np.ndindex(len(starts), *grid):
            first = int(np.ravel_multi_index(place[1:], grid)) * length if grid else 0
            piece = Piece(self.number, first, first + length, starts[place[0]])
            skip = place[0] * self.plan.batch - starts[place[0]] if self.plan.batch else 0
            forms = [self._form(leaf, skip, piece.example) for leaf in across]
            shapes = [self._shape(form) for form in forms]
            dtypes = [form.dtype for form in forms]
            found = parts_of(give_block, (package, piece, forms), shapes, dtypes)
            for cell, part in zip(cells, found, strict=True):
                cell[place] = part
        return [
            joined(cell, self._axes(leaf, len(grid)))
            for cell, leaf in zip(cells, across, strict=True)
        ]

    def _form(self, leaf: Leaf, skip: int, example: int) -> Form:
        lines = self.portion.lines
        other = _within(leaf, lines.examples)
        rows, columns = (self.block, other) if lines.mode == "reverse" else (other, self.block)
        total = (lines.total or lines.examples) if self.whole and lines.examples else 0
        return Form(rows, columns, self._dtype(leaf), skip, total, example)

    def _shape(self, form: Form) -> tuple[int, ...]:
        examples = self.portion.lines.examples
        if not examples:
            return (*form.rows, *form.columns)
        between = (form.total,) if form.total else ()
        return (examples - form.skip, *form.rows, *between, *form.columns)

    def _axes(self, leaf: Leaf, count: int) -> list[int]:
        """The axes of the result that the grid's are: examples first, then those of the lines."""
        lines = self.portion.lines
        before = 1 if lines.examples else 0
        if lines.mode == "forward":
            before += len(_within(leaf, lines.examples))
            before += 1 if lines.examples and self.whole else 0
        return [0, *range(before, before + count)]

    def _dtype(self, leaf: Leaf) -> np.dtype[Any]:
        """Of the input, as in this process: a derivative by float32 is float32."""
        source = leaf if self.portion.lines.mode == "reverse" else self.portion.lines.along
        return numpy_dtype(self.narrow or source.dtype)


def _block(portion: Portion, plan: Plan, crew: Crew, *, whole: bool) -> tuple[int, ...]:
    """The extents of a block along the lines, in the shape of what they are counted by."""
    lines = portion.lines
    most = lines_of_a_piece(portion, plan, len(crew.workers))
    # A block is gathered whole before it is handed on, so it is part of what a worker holds.
    room = max(1, (int(crew.budget) - int(portion.transient)) // _SHARE)
    line = sum(leaf.size * leaf.dtype.size for leaf in lines.across)
    if whole and lines.examples:
        line *= lines.total or lines.examples
    most = max(1, min(most, max(portion.chunk if not lines.examples else 1, room // line)))
    return stretch(_within(lines.along, lines.examples), most)


def _zeros_fit(crew: Crew, about: Known, plan: Plan) -> bool:
    lines = plan.portions[0].lines
    total = lines.total or lines.examples
    columns = max(leaf.size // lines.examples for leaf in lines.across)
    item = max(leaf.dtype.size for leaf in about.subject.sources)
    return lines.examples * total * columns * item <= int(crew.budget) // _SHARE


def _within(leaf: Leaf, examples: int) -> tuple[int, ...]:
    """The shape of one example's part, where examples do not mix."""
    return leaf.shape[1:] if examples else leaf.shape
