"""Determinants against the truth: signs, logarithms, and whether the error bars hold.

    python -m tests.accuracy.determinants [--count 1000] [--seed 0]

Every family is a kind of matrix that some method is known to fail on, or whose rounding errors are
of another size than those of random matrices. The truth is computed with exact integers for small
matrices, and in twice the digits otherwise. Every matrix goes through several methods, chosen by
budgets: in memory, in panels, in tiles, and, for small ones, side by side.
"""

# ruff: noqa: T201 - a command line prints

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.errors import InputError
from snugly.linalg import plan, slogdet

if TYPE_CHECKING:
    from collections.abc import Callable

EXACT = 14
"""Rows up to which the truth comes from exact integers."""


def adversaries(size: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Matrices that elimination without a search over whole columns gets wrong, and relatives."""
    generator = np.random.default_rng(seed)
    half, third = size // 2, max(1, size // 3)

    def normal(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape)

    swap = np.roll(np.eye(size), half, axis=0)
    tiny, rank_one = normal(size, size), normal(size, size)
    tiny[:half, :half] *= 1e-14
    rank_one[:half, :half] = np.outer(normal(half), normal(half))
    symmetric = normal(size - third, size - third)
    constraints = normal(third, size - third)
    kkt = np.block(
        [
            [symmetric @ symmetric.T / size + np.eye(size - third), constraints.T],
            [constraints, np.zeros((third, third))],
        ]
    )
    wilkinson = np.tril(-np.ones((size, size)), -1) + np.eye(size)
    wilkinson[:, -1] = 1
    singular = generator.integers(-9, 10, (size, size)).astype(np.float64)
    singular[-1] = singular[0] if size > 1 else 0
    zero_block = normal(size, size)
    zero_block[:half, :half] = 0
    return {
        "block swap": swap,
        "permutation": np.eye(size)[generator.permutation(size)],
        "kkt": kkt,
        "tiny leading block": tiny,
        "rank-1 leading block": rank_one,
        "zero leading block": zero_block,
        "wilkinson": wilkinson,
        "singular": singular,
    }


def families(size: int, seed: int) -> dict[str, np.ndarray]:
    """Other kinds of matrices whose rounding errors are not those of random ones."""
    generator = np.random.default_rng(seed)
    normal = generator.standard_normal((size, size))
    left, _ = np.linalg.qr(normal)
    right, _ = np.linalg.qr(generator.standard_normal((size, size)))
    points = np.sort(generator.uniform(0, 1, size))
    distance = np.abs(points[:, np.newaxis] - points)
    small = np.ones(size)
    small[-1] = 10.0 ** -generator.uniform(0, 5)
    band = sum(
        np.diag(generator.standard_normal(size - abs(k)), k) for k in range(-2, 3) if size > 2
    )
    return {
        "random": normal,
        "spectrum": (left * np.geomspace(1, 10.0 ** -generator.uniform(0, 5), size)) @ right,
        "one small singular value": (left * small) @ right,
        "graded rows": normal * np.geomspace(1, 1e-12, size)[:, np.newaxis],
        "graded both": normal
        * np.geomspace(1e-9, 1, size)
        * np.geomspace(1, 1e-9, size)[generator.permutation(size)][:, np.newaxis],
        "band": band if size > 2 else normal,
        "kernel": np.exp(-3 * distance) + 1e-3 * np.eye(size),
        "smooth kernel": np.exp(-30 * distance**2) + 1e-2 * np.eye(size),
        "shifted": normal + 100,
        "ones and diagonal": np.ones((size, size)) + np.diag(generator.uniform(0.01, 1, size)),
        "positive": generator.uniform(0, 1, (size, size)),
        "integers": generator.integers(-9, 10, (size, size)).astype(np.float64),
        "gram": normal @ normal.T / size,
        "triangular": np.triu(normal) + 2 * np.eye(size),
    }


def exact_logarithm(matrix: np.ndarray) -> tuple[int, float]:
    """Sign and log|det|: by exact integers for small matrices, else in twice the digits."""
    if len(matrix) <= EXACT:
        return _by_fractions(matrix)
    if not np.tril(matrix, -1).any():
        # The product of the diagonal. Elimination in long double is off by 1e-5 for some of them.
        diagonal = matrix.diagonal().astype(np.longdouble)
        return int(np.prod(np.sign(diagonal))), float(np.log(np.abs(diagonal)).sum())
    return _by_elimination(matrix)


def _by_fractions(matrix: np.ndarray) -> tuple[int, float]:
    rows = [[Fraction(float(entry)) for entry in row] for row in matrix]
    total = Fraction(1)
    for step in range(len(rows)):
        place = next((i for i in range(step, len(rows)) if rows[i][step] != 0), None)
        if place is None:
            return 0, -math.inf
        if place != step:
            rows[step], rows[place] = rows[place], rows[step]
            total = -total
        pivot = rows[step][step]
        total *= pivot
        for row in rows[step + 1 :]:
            factor = row[step] / pivot
            if factor:
                for j in range(step, len(rows)):
                    row[j] -= factor * rows[step][j]
    return (1 if total > 0 else -1), _log_of_fraction(abs(total))


def _log_of_fraction(value: Fraction) -> float:
    """By mantissa and exponent: two logarithms of long integers would cancel."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    mantissa = value / Fraction(2) ** exponent
    return math.log(float(mantissa)) + exponent * math.log(2)


def _by_elimination(matrix: np.ndarray) -> tuple[int, float]:
    """Elimination with complete pivoting, in long double."""
    work = matrix.astype(np.longdouble)
    sign, total = 1, work.dtype.type(0)
    for step in range(len(work)):
        rest = np.abs(work[step:, step:])
        row, column = np.unravel_index(np.argmax(rest), rest.shape)
        if row:
            work[[step, step + row]] = work[[step + row, step]]
            sign = -sign
        if column:
            work[:, [step, step + column]] = work[:, [step + column, step]]
            sign = -sign
        pivot = work[step, step]
        sign = sign if pivot > 0 else -sign
        total += np.log(np.abs(pivot))
        work[step + 1 :, step:] -= np.outer(work[step + 1 :, step] / pivot, work[step, step:])
    return sign, float(total)


def others() -> dict[str, Callable[[np.ndarray], tuple[float, float]]]:
    """Who else works out of core, where it is installed."""
    found: dict[str, Callable[[np.ndarray], tuple[float, float]]] = {}
    try:
        from detkit import memdet

        def by_memdet(matrix: np.ndarray) -> tuple[float, float]:
            logarithm, sign, *_ = memdet(matrix, num_blocks=4)
            return sign, logarithm

        found["memdet"] = by_memdet
    except ImportError:
        pass
    try:
        import dask.array as da

        def by_dask(matrix: np.ndarray) -> tuple[float, float]:
            order, _, upper = da.linalg.lu(da.from_array(matrix, chunks=len(matrix) // 4))
            pivots = np.diag(upper.compute())
            sign = np.linalg.slogdet(order.compute())[0] * np.prod(np.sign(pivots))
            return sign, float(np.log(np.abs(pivots)).sum())

        found["dask"] = by_dask
    except ImportError:
        pass
    return found


def budgets(matrix: np.ndarray) -> list[int | None]:
    """No limit, one that asks for panels, and the least there is."""
    try:
        plan(matrix.shape, matrix.dtype, 1)
    except InputError as refusal:
        least = int(refusal.hint.split("memory=")[1].rstrip("`"))
        return [None, least + matrix.nbytes // 4, least]
    raise AssertionError("one byte is enough for nothing")


class Tally:
    """How many were right, and how true errors lie to error bars."""

    def __init__(self) -> None:
        self.ratios: list[float] = []
        self.open = 0
        self.wrong: list[str] = []

    def count(self, name: str, result: Any, truth: tuple[int, float]) -> None:
        """Enter one result."""
        sign, logarithm = truth
        if not result.sign_certain:
            self.open += 1
            return
        if float(result.sign) != sign:
            self.wrong.append(f"{name}: sign {result.sign}, not {sign} ({result.method})")
            return
        if sign == 0:
            return
        # The truth itself is rounded once.
        off = max(0.0, abs(result.logabs - logarithm) - 2**-52 * abs(logarithm))
        ratio = off / result.error if off else 0.0
        self.ratios.append(ratio)
        if ratio > 3:
            self.wrong.append(
                f"{name}: off by {off:.3g}, error {result.error:.3g} ({result.method})"
            )


def measure(count: int, seed: int) -> dict[str, Tally]:
    """At least so many matrices of all families, through all methods."""
    generator = np.random.default_rng(seed)
    tallies: dict[str, Tally] = defaultdict(Tally)
    done = 0
    while done < count:
        size = int(generator.choice([3, 5, 8, 12, 20, 33, 64, 100, 150]))
        draw = int(generator.integers(1 << 31))
        kinds = {**adversaries(size, draw), **families(size, draw)}
        dtype = np.dtype(generator.choice(["float32", "float64"]))
        for name, wide in kinds.items():
            matrix = wide.astype(dtype)
            truth = (0, -math.inf) if name == "singular" else exact_logarithm(matrix)
            for memory in budgets(matrix):
                title = f"{name} {size} {dtype}"
                tallies[name].count(title, slogdet(matrix, memory), truth)
            done += 1
    return tallies


def main() -> None:
    """Print how it went, family by family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tallies = measure(arguments.count, arguments.seed)
    for name, tally in tallies.items():
        ratios = np.array(tally.ratios or [0.0])
        print(
            f"{name:26} {len(tally.ratios):5} results, true ÷ reported error:"
            f" median {np.median(ratios):.2f}, largest {ratios.max():.2f};"
            f" {tally.open} left open; {len(tally.wrong)} wrong"
        )
    everything = np.array([ratio for tally in tallies.values() for ratio in tally.ratios])
    wrong = [line for tally in tallies.values() for line in tally.wrong]
    print(f"true error ≤ 2 × reported: {100 * np.mean(everything <= 2):.2f} % of {len(everything)}")
    print(f"left open: {sum(tally.open for tally in tallies.values())}")
    print(f"wrong: {len(wrong)}", *wrong[:20], sep="\n  ")


if __name__ == "__main__":
    main()
