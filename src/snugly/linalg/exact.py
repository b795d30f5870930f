"""The exact determinant of a small matrix, for when rounding leaves it open.

Floating-point numbers are integers times powers of two. With the powers taken out of the rows, the
determinant is that of an integer matrix, computed modulo many primes at once, side by side, and put
together by the Chinese remainder theorem; Hadamard's bound says how many primes that takes.

One prime is enough to show that a matrix is *not* singular. For matrices too large for the whole
number, a few primes that all find it singular show that it is, but for a chance below 10⁻¹⁵.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from snugly.linalg.product import Product

LARGEST: Final = 160
"""Rows up to which an exact determinant takes a few seconds at most."""

LARGEST_SINGULAR: Final = 1000
"""Rows up to which it takes seconds to find out whether a matrix is singular."""

_PRIME_BITS: Final = 30
"""Primes just below 2³⁰: the product of two remainders fits into an int64."""
_MOST_BITS: Final = 200_000
_MOST_WORK: Final = 300_000_000
"""Remainders that are changed, at most: about four seconds (measured, 12 ns each)."""
_LANES: Final = 64
_WITNESSES: Final = 4
_HELD: Final = 5
"""Times the remainders that elimination holds."""
_BESIDE: Final = 8


def lanes_in(budget: int | None, size: int) -> int:
    """Primes that can be worked with at once inside a budget; 0 where there is room for none."""
    most = _LANES if size <= LARGEST else 1
    if budget is None:
        return most
    # The matrix as it is read, its integers and powers are held beside them.
    return max(0, min(most, (budget // (size * size * 8) - _BESIDE) // _HELD))


def is_singular(matrix: np.ndarray) -> bool:
    """Whether a real matrix is singular: no is certain, yes is right but for a chance of 10⁻¹⁵."""
    if not matrix.any(axis=1).all():
        return True
    integers, powers = _as_integers(matrix)
    if int((powers - powers.min(axis=1, keepdims=True)).max()) > _MOST_BITS:
        return False
    return all(
        _determinants(_reduced(integers, powers, prime), prime)[0] == 0
        for prime in np.split(_primes(_WITNESSES), _WITNESSES)
    )


def exact_determinant(matrix: np.ndarray, lanes: int = _LANES) -> Product | None:
    """The determinant of a real matrix, exactly; None where the numbers spread too far for it."""
    if not matrix.any(axis=1).all():
        return Product(0.0, 0.0, 0)
    integers, lowest = _as_integers(matrix)
    bits = _bound(integers, lowest)
    if bits > _MOST_BITS:
        return None
    count = bits // (_PRIME_BITS - 1) + 1
    if len(matrix) ** 3 // 3 * count > _MOST_WORK:
        return None
    primes = _primes(count)
    value, modulus = 0, 1
    for start in range(0, len(primes), lanes):
        some = primes[start : start + lanes]
        remainders = _determinants(_reduced(integers, lowest, some), some)
        for prime, remainder in zip(some.tolist(), remainders.tolist(), strict=True):
            # Garner's step: the value modulo one more prime.
            step = (remainder - value) * pow(modulus, -1, prime) % prime
            value, modulus = value + modulus * step, modulus * prime
    if value > modulus // 2:
        value -= modulus
    return _product(value, int(lowest.min(axis=1).sum()))


def _as_integers(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Odd mantissas of up to 53 bits, as int64, and the power of two of each."""
    mantissas, exponents = np.frexp(matrix.astype(np.float64))
    integers = (mantissas * 2.0**53).astype(np.int64)
    powers = exponents.astype(np.int64) - 53
    # Take trailing zeros out, so that small whole numbers stay small.
    zeros = np.zeros_like(powers)
    for shift in (32, 16, 8, 4, 2, 1):
        even = (integers != 0) & (integers % (1 << shift) == 0)
        integers = np.where(even, integers >> shift, integers)
        zeros += np.where(even, shift, 0)
    powers += zeros
    row_lowest = np.where(integers != 0, powers, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
    return integers, np.where(integers != 0, powers, row_lowest)


def _bound(integers: np.ndarray, powers: np.ndarray) -> int:
    """Bits that hold the determinant and its sign, by Hadamard's bound."""
    relative = powers - powers.min(axis=1, keepdims=True)
    lengths = np.log2(np.maximum(np.abs(integers), 1)) + relative
    longest = lengths.max(axis=1) + math.log2(len(integers)) / 2 + 1
    return math.ceil(float(longest.sum())) + 2


def _reduced(integers: np.ndarray, powers: np.ndarray, primes: np.ndarray) -> np.ndarray:
    """The integer matrix modulo each prime, primes last."""
    relative = powers - powers.min(axis=1, keepdims=True)
    result = np.empty((*integers.shape, len(primes)), np.int64)
    for lane, prime in enumerate(primes.tolist()):
        table = np.array([pow(2, int(power), prime) for power in range(int(relative.max()) + 1)])
        result[..., lane] = integers % prime * table[relative] % prime
    return result


def _determinants(matrices: np.ndarray, primes: np.ndarray) -> np.ndarray:
    """Gaussian elimination modulo primes, side by side."""
    size, lanes = len(matrices), np.arange(len(primes))
    work, total = matrices, np.ones(len(primes), np.int64)
    for _ in range(size):
        place = np.argmax(work[:, 0] != 0, axis=0)
        row = work[place, :, lanes].T
        work[place, :, lanes] = work[0].T
        total = np.where(place > 0, -total, total) * row[0] % primes
        inverse = _inverses(row[0], primes)
        factors = work[1:, 0] * inverse % primes
        work = (work[1:, 1:] - factors[:, np.newaxis] * row[1:] % primes) % primes
    return total % primes


def _inverses(values: np.ndarray, primes: np.ndarray) -> np.ndarray:
    pairs = zip(values.tolist(), primes.tolist(), strict=True)
    return np.array([pow(value, -1, prime) if value else 0 for value, prime in pairs], np.int64)


def _product(value: int, power: int) -> Product:
    if value == 0:
        return Product(0.0, 0.0, 0)
    length = abs(value).bit_length()
    # The leading 64 bits, rounded once more by the division.
    shift = max(0, length - 64)
    leading = abs(value) >> shift
    mantissa, exponent = math.frexp(leading)
    return Product(1.0 if value > 0 else -1.0, mantissa, exponent + shift + power)


@cache
def _primes(count: int) -> np.ndarray:
    """The largest primes below 2³⁰."""
    found: list[int] = []
    high = 1 << _PRIME_BITS
    small = _sieve(math.isqrt(high) + 1)
    while len(found) < count:
        low = high - (1 << 16)
        composite = np.zeros(high - low, bool)
        for prime in small:
            composite[-low % prime :: prime] = True
        found.extend((low + np.flatnonzero(~composite))[::-1].tolist())
        high = low
    return np.array(found[:count], np.int64)


def _sieve(limit: int) -> list[int]:
    composite = np.zeros(limit, bool)
    composite[:2] = True
    for number in range(2, math.isqrt(limit) + 1):
        if not composite[number]:
            composite[number * number :: number] = True
    return np.flatnonzero(~composite).tolist()
