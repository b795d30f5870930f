"""Matrices for these tests: the ones that break other programs, and their exact determinants."""

import math
import re
from fractions import Fraction

import numpy as np

from snugly.errors import InputError
from snugly.linalg.panels import factor_in_panels
from snugly.linalg.panels import scratch_size as panels_size
from snugly.linalg.plan import choose
from snugly.linalg.scratch import Scratch
from snugly.linalg.sources import ArraySource, Source
from snugly.linalg.tiles import factor_in_tiles
from snugly.linalg.tiles import scratch_size as tiles_size
from snugly.linalg.whole import factor_whole
from snugly.units import Size

OUT_OF_CORE = ("panels", "tiles")
FACTORISATIONS = ("whole", *OUT_OF_CORE)
DTYPES = ("float32", "float64", "complex64", "complex128")


def random_matrix(size, dtype="float64", seed=0, batch=()):
    """Normally distributed entries; in the imaginary part too, where there is one."""
    generator = np.random.default_rng(seed)
    shape = (*batch, size, size)
    entries = generator.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        entries = entries + 1j * generator.standard_normal(shape)
    return entries.astype(dtype)


def block_swap(size):
    """[[0, I], [I, 0]]: every diagonal block of a quarter of it is zero."""
    half = size // 2
    return np.roll(np.eye(2 * half), half, axis=0)


def permutation(size, seed=0):
    return np.eye(size)[np.random.default_rng(seed).permutation(size)]


def kkt(size):
    """[[H, Cᵀ], [C, 0]] with a positive H: what an optimiser with constraints solves."""
    free = 2 * size // 3
    some = random_matrix(size)
    matrix = np.zeros((size, size))
    matrix[:free, :free] = some[:free, :free] @ some[:free, :free].T / free + np.eye(free)
    matrix[free:, :free], matrix[:free, free:] = some[free:, :free], some[free:, :free].T
    return matrix


def tiny_leading_block(size):
    matrix = random_matrix(size)
    matrix[: size // 2, : size // 2] *= 1e-14
    return matrix


def rank_one_leading_block(size):
    matrix = random_matrix(size)
    half = size // 2
    matrix[:half, :half] = np.outer(matrix[0, :half], matrix[:half, 0])
    return matrix


def wilkinson(size):
    """Partial pivoting doubles the last column in every step; the determinant is 2ⁿ⁻¹."""
    matrix = np.eye(size) - np.tril(np.ones((size, size)), -1)
    matrix[:, -1] = 1
    return matrix


def singular(size):
    """The last column is the sum of all others, exactly: whole numbers."""
    matrix = np.random.default_rng(3).integers(-9, 10, (size, size)).astype(np.float64)
    matrix[:, -1] = matrix[:, :-1].sum(axis=1)
    return matrix


ADVERSARIES = {
    make.__name__: make
    for make in (
        block_swap,
        permutation,
        kkt,
        tiny_leading_block,
        rank_one_leading_block,
        wilkinson,
        singular,
    )
}


def exact_determinant(matrix):
    """The determinant of a real matrix as a Fraction: Bareiss's elimination in whole numbers."""
    rows, power = [], 0
    for row in matrix:
        ratios = [float(entry).as_integer_ratio() for entry in row]
        shift = max(denominator for _, denominator in ratios)
        rows.append([numerator * (shift // denominator) for numerator, denominator in ratios])
        power += shift.bit_length() - 1
    sign, previous, size = 1, 1, len(rows)
    for step in range(size):
        pivot = next((i for i in range(step, size) if rows[i][step]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != step:
            rows[step], rows[pivot], sign = rows[pivot], rows[step], -sign
        top = rows[step]
        for i in range(step + 1, size):
            row, head = rows[i], rows[i][step]
            rows[i] = [
                (a * top[step] - head * b) // previous for a, b in zip(row, top, strict=True)
            ]
        previous = top[step]
    return Fraction(sign * previous, 1 << power)


def logarithm(value):
    """Sign and log|x| of a Fraction of any size."""
    if value == 0:
        return 0.0, -math.inf
    shift = abs(value.numerator).bit_length() - value.denominator.bit_length()
    ratio = float(abs(value) / Fraction(2) ** shift)  # between 1/2 and 2
    return 1.0 if value > 0 else -1.0, math.fsum((math.log(ratio), shift * math.log(2)))


def exact_slogdet(matrix):
    return logarithm(exact_determinant(matrix))


def source_of(matrix):
    return matrix if isinstance(matrix, Source) else ArraySource(matrix)


def factored(  # noqa: PLR0913 - what the three take, by name
    method, matrix, *, width=None, height=None, progress=None, folder=None
):
    """What one of the three factorisations finds out about a single matrix."""
    source = source_of(matrix)
    size, item = source.size, source.working.itemsize
    report = progress or (lambda _: None)
    width = width or max(1, size // 3)
    if method == "whole":
        memory = np.empty((size, size), source.working).T
        return factor_whole(source, 0, memory, filled=False, progress=report)
    if method == "panels":
        shape = (height or max(1, size // 5), width)
        with Scratch(panels_size(size, width, item), folder) as scratch:
            return factor_in_panels(source, 0, scratch, shape, report)
    with Scratch(tiles_size(size, width, item), folder) as scratch:
        return factor_in_tiles(source, 0, scratch, side=width, progress=report)


def assert_right(found, expected, times=3.0):
    """A certain sign is the true one, and the logarithm is within so many error bars."""
    sign, logabs = expected
    assert found.certain
    assert found.product.sign == sign
    assert abs(found.product.logarithm - logabs) <= times * found.error


def least_named(error):
    """The budget that the hint of an error tells to give."""
    return int(re.search(r"memory=(\d+)", error.hint).group(1))


def budget_for(method, size, dtype="float64", reading=0):
    """A budget for which the planner takes this method: whatever its constants are today."""
    budget = 32 << 10
    while True:
        budget += budget // 50
        try:
            plan = choose(
                (size, size), np.dtype(dtype), Size(budget), overwritable=False, reading=reading
            )
        except InputError:
            continue
        if plan.method == method:
            return budget
        assert plan.method != "copy", f"no budget makes it {method}"
