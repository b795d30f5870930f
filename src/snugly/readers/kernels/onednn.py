"""When oneDNN's kernel runs in place of TensorFlow's own, and the scratch its primitives ask for.

The scratch sizes were measured with oneDNN 3 of TensorFlow 2.21 on an AVX-512 machine, with 1, 2
and 4 threads. oneDNN picks its blocks by instruction set, so another machine may ask for a little
more or less. Only what oneDNN takes through TensorFlow's allocator counts: the backward
convolutions use memory of oneDNN's own, which no limit of TensorFlow's sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snugly.readers.node import Node, Shape

# graph/mkl_layout_pass.cc rewrites these types. It rewrites half too, on processors with AMX-FP16,
# and bfloat16 only on those with AVX-512 or newer.
TYPES = {"float32", "bfloat16"}


def runs_onednn(node: Node) -> bool:
    """Whether oneDNN's kernel takes this node, going by device and type."""
    if not node.machine.onednn or node.machine.device != "cpu":
        return False
    first = next((value for value in node.inputs if value.dtype != "int32"), None)
    if first is None or first.dtype not in TYPES:
        return False
    return first.dtype == "float32" or node.machine.wide_vectors


def runs_own_cpu_kernel(node: Node) -> bool:
    """Whether TensorFlow's own CPU kernel does. What a GPU's kernels need is not known here."""
    return node.machine.device == "cpu" and not runs_onednn(node)


def convolution_scratch(threads: int) -> int:
    """Descriptors of a forward convolution's blocks: a page, and a little over one per thread."""
    return 4096 + 4120 * threads


# Descriptors of a product's blocks, and what each copy buffer is aligned by.
DESCRIPTORS, DESCRIPTORS_PER_THREAD, ALIGNMENT = 128, 640, 128
ROWS = 256  # of the left operand, at most, copied together
COLUMNS = 64  # of the right operand, copied together
DEEP = 512  # from here on the depth is cut into blocks
VERY_DEEP = 2048


@dataclass(frozen=True, slots=True)
class Product:
    """A batch of products: [rows, inner] times [inner, columns], as stored or transposed."""

    batch: int
    rows: int
    inner: int
    columns: int
    left_transposed: bool
    right_transposed: bool
    item_bytes: int


def product_scratch(product: Product, threads: int) -> int:
    """An operand that does not lie as the kernel wants it is copied, by blocks."""
    halves = product.item_bytes < 4  # noqa: PLR2004 - float32's
    step = 32 if halves else 16  # the depth is padded to what one vector instruction takes
    depth = -(-product.inner // step) * step
    total = DESCRIPTORS + DESCRIPTORS_PER_THREAD * threads
    if product.left_transposed and product.rows > 1:
        shared_rows = product.batch < threads  # among the threads, there being no batch to share
        total += threads * _left_block(product, depth, threads, shared_rows) + ALIGNMENT
    # Halves want pairs of rows side by side; rows of a multiple of 512 share their cache lines.
    if (product.right_transposed and product.columns > 1) or halves or product.columns % DEEP == 0:
        if product.inner >= DEEP:
            depth = DEEP if product.inner < VERY_DEEP else 2 * DEEP
        total += threads * COLUMNS * depth * product.item_bytes + ALIGNMENT
    return total


def float32_sums(result: Shape, threads: int) -> int:
    """Without instructions for bfloat16 each thread sums one product of the batch in float32.

    Measured with AVX-512 VNNI and 1, 2 and 4 threads, to the byte where there is a product for each
    thread; where there are fewer, 512 bytes more were taken.
    """
    together = min(prod(result[:-2]), threads)
    return DESCRIPTORS + together * prod(result[-2:]) * 4


def _left_block(product: Product, depth: int, threads: int, shared_rows: bool) -> int:
    blocks = 1
    if product.columns > 1:
        blocks = -(-product.rows // ROWS)
        if shared_rows and product.rows > ROWS // 2:
            blocks = max(blocks, threads)
    if product.inner >= DEEP:
        depth = (DEEP + 16) // (2 if shared_rows else 1)
    return -(-product.rows // blocks) * depth * product.item_bytes
