"""Einsum: operands transposed to [batch, free, contracted], multiplied, the result transposed back.

linalg/einsum_op_impl.h; each transpose, diagonal and sum goes to a temporary, and the last of them
becomes the output.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from snugly.readers.kernels.behaviour import PLAIN, Behaviour, rule
from snugly.readers.kernels.onednn import Product, product_scratch, runs_onednn

if TYPE_CHECKING:
    from snugly.readers.node import Node, Shape

# EinsumDimensionType, in the order in which operands are sorted.
BROADCASTING, BATCH, FREE, CONTRACTED, REDUCED = range(5)
# With free and contracted swapped: an operand sorted like this is multiplied transposed, uncopied.
SWAPPED = (BROADCASTING, BATCH, CONTRACTED, FREE, REDUCED)


@dataclass(slots=True)
class Equation:
    """An equation, its ellipses written out. Labels are numbers, as the kernel has them."""

    operands: list[list[int]]
    result: list[int]
    kinds: dict[int, int] = field(default_factory=dict)


def parse(equation: str, shapes: list[Shape]) -> Equation:
    """ParseEinsumEquation and ProcessDimensions, for operands of these ranks."""
    left, _, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    numbers: dict[str, int] = {}
    for character in left.replace(",", "").replace(".", ""):
        numbers.setdefault(character, len(numbers))
    ranks = [
        len(shape) - len(text.replace("...", "")) if "..." in text else 0
        for text, shape in zip(texts, shapes, strict=True)
    ]
    most = max(ranks, default=0)

    def labels(text: str, broadcast: int) -> list[int]:
        before, dots, after = text.partition("...")
        spread = [len(numbers) + most - broadcast + i for i in range(broadcast)] if dots else []
        return [numbers[c] for c in before] + spread + [numbers[c] for c in after]

    operands = [labels(text, rank) for text, rank in zip(texts, ranks, strict=True)]
    result = labels(right, most)
    kinds: dict[int, int] = {}
    for label in numbers.values():
        unique = sum(label in operand for operand in operands) == 1
        kept = label in result
        kinds[label] = (FREE if unique else BATCH) if kept else (REDUCED if unique else CONTRACTED)
    for label in range(len(numbers), len(numbers) + most):
        kinds[label] = BROADCASTING
    return Equation(operands, result, kinds)


@dataclass(slots=True)
class Prepared:
    """One operand on its way to the product: the temporaries it left behind and how it arrives."""

    labels: list[int]
    elements: int
    temporaries: list[int]  # elements each
    swapped: bool = False


def prepare(labels: list[int], sizes: dict[int, int], kinds: dict[int, int]) -> Prepared:
    """ReduceOperand: transpose unless sorted, take diagonals, sum what only this operand has."""
    order = list(labels)
    swapped = all((SWAPPED[kinds[a]], a) <= (SWAPPED[kinds[b]], b) for a, b in pairwise(order))
    elements = prod(sizes[label] for label in labels)
    temporaries: list[int] = []
    if not swapped:
        order.sort(key=lambda label: (kinds[label], label))
        if order != labels and len(labels) > 1:
            temporaries.append(elements)
    once = sorted(set(order), key=order.index)
    if len(once) < len(order):  # a diagonal
        elements = prod(sizes[label] for label in once)
        temporaries.append(elements)
    reduced = prod(sizes[label] for label in once if kinds[label] == REDUCED)
    if reduced > 1:
        elements //= reduced
        temporaries.append(elements)
    return Prepared(
        [label for label in once if kinds[label] != REDUCED], elements, temporaries, swapped
    )


def size_of(prepared: Prepared, sizes: dict[int, int], kinds: dict[int, int], *wanted: int) -> int:
    """Elements along the dimensions of the wanted kinds."""
    return prod(sizes[label] for label in prepared.labels if kinds[label] in wanted)


@rule("Einsum")
def einsum(node: Node) -> Behaviour:
    """EinsumOp::Compute, counting temporaries instead of making them."""
    shapes = [value.shape for value in node.inputs if value.shape is not None]
    if len(shapes) < len(node.inputs):
        return PLAIN
    equation = parse(str(node.attribute("equation")), shapes)
    sizes: dict[int, int] = {}
    for labels, shape in zip(equation.operands, shapes, strict=True):
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    kinds = equation.kinds
    operands = [prepare(labels, sizes, kinds) for labels in equation.operands]
    free = [label for operand in operands for label in operand.labels if kinds[label] == FREE]
    batch = sorted(
        (label for label in sizes if kinds[label] <= BATCH), key=lambda label: (kinds[label], label)
    )
    made = batch + free
    product = prod(sizes[label] for label in made)
    temporaries = [size for operand in operands for size in operand.temporaries]
    if len(operands) > 1:
        temporaries.append(product)
    repeats = Counter(equation.result)
    inflated = [label for label in made for _ in range(repeats[label])]
    if len(inflated) > len(made):
        temporaries.append(prod(sizes[label] for label in inflated))
    if inflated != equation.result and len(inflated) > 1:
        temporaries.append(node.outputs[0].elements)
    if not temporaries:
        return Behaviour(shares=(0,))
    # The last temporary is the output.
    item = node.inputs[0].item_bytes
    workspace = [size * item for size in temporaries[:-1]]
    if len(operands) > 1 and runs_onednn(node):
        # Freed before the result is transposed, so only what exceeds that copy adds to the peak.
        needed = _scratch(node, operands, sizes, kinds)
        later = temporaries[-1] * item if inflated != equation.result else 0
        workspace.append(max(0, needed - later))
    return Behaviour(workspace=tuple(size for size in workspace if size))


def _scratch(
    node: Node, operands: list[Prepared], sizes: dict[int, int], kinds: dict[int, int]
) -> int:
    left, right = operands
    product = Product(
        batch=size_of(left, sizes, kinds, BROADCASTING, BATCH),
        rows=size_of(left, sizes, kinds, FREE),
        inner=size_of(left, sizes, kinds, CONTRACTED),
        columns=size_of(right, sizes, kinds, FREE),
        left_transposed=left.swapped,
        right_transposed=not right.swapped,
        item_bytes=node.inputs[0].item_bytes,
    )
    return product_scratch(product, node.machine.threads)
