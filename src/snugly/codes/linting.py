"""What `snugly lint` finds in source code: SNG4xx.

SNG401 to SNG434 are TFM001 to TFM034 of the collection of rules that they began as.

    SNG401–413, 419, 428, 429, 432, 434  linting_loops  what grows while a program runs
    all others                           linting_sizes  what is too large, too late, or gone
"""

from __future__ import annotations

from typing import Final

from snugly.codes import linting_loops, linting_sizes

CODES: Final = tuple(
    sorted((*linting_loops.CODES, *linting_sizes.CODES), key=lambda entry: entry.code)
)
