"""Determinants of matrices up to 4×4 by the Leibniz formula, many at once.

Written for any array module (NumPy, TensorFlow under XLA): `entries[i][j]` are arrays of the same
entry of all matrices. float32 and narrower are computed in float64, where no product of four
entries over- or underflows and the result is right to float32; wider types are scaled by powers of
two first (`scaled`).

Beside the determinant comes its permanent of moduli, Σ|a·b·c·d|: rounding errors are a few units of
roundoff of that sum, so that the ratio of both is the error bar.
"""

from __future__ import annotations

from typing import Any, Final

LARGEST: Final = 4
"""Beyond 4×4 the formula takes more operations than elimination."""

ROUNDINGS: Final = 6
"""A product of four and the sums around it: 3 + 3 roundings at most, each of half a unit."""


def leibniz(entries: list[list[Any]], modulus: Any) -> tuple[Any, Any]:
    """Determinant and permanent of moduli; `modulus` gives absolute values."""
    match len(entries):
        case 1:
            return entries[0][0], modulus(entries[0][0])
        case 2:
            return _minor(entries, (0, 1), (0, 1), modulus)
        case 3:
            return _along_first_row(entries, modulus)
        case _:
            return _by_halves(entries, modulus)


def _minor(
    entries: list[list[Any]], rows: tuple[int, int], columns: tuple[int, int], modulus: Any
) -> tuple[Any, Any]:
    (i, j), (k, m) = rows, columns
    main, other = entries[i][k] * entries[j][m], entries[i][m] * entries[j][k]
    return main - other, modulus(main) + modulus(other)


def _along_first_row(entries: list[list[Any]], modulus: Any) -> tuple[Any, Any]:
    first = entries[0]
    (a, b, c) = (_minor(entries, (1, 2), columns, modulus) for columns in ((1, 2), (0, 2), (0, 1)))
    determinant = first[0] * a[0] - first[1] * b[0] + first[2] * c[0]
    permanent = modulus(first[0]) * a[1] + modulus(first[1]) * b[1] + modulus(first[2]) * c[1]
    return determinant, permanent


def _by_halves(entries: list[list[Any]], modulus: Any) -> tuple[Any, Any]:
    """Laplace along the first two rows: six minors above, six below."""
    pairs = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    signs = (1, -1, 1, 1, -1, 1)
    determinant = permanent = None
    for sign, columns in zip(signs, pairs, strict=True):
        rest = tuple(k for k in range(4) if k not in columns)
        upper, above = _minor(entries, (0, 1), columns, modulus)
        lower, below = _minor(entries, (2, 3), (rest[0], rest[1]), modulus)
        term, weight = upper * lower, above * below
        if determinant is None or permanent is None:
            determinant, permanent = term, weight
        else:
            determinant = determinant + term if sign > 0 else determinant - term
            permanent = permanent + weight
    return determinant, permanent
