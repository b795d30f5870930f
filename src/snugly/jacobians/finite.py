"""Where a result is not finite."""

from __future__ import annotations

from typing import Final

import numpy as np

_PIECE: Final = 1 << 18
"""Numbers looked at together."""


def first_not_finite(array: np.ndarray) -> tuple[int, ...] | None:
    """The index of the first entry that is NaN or infinite, found piece by piece."""
    flat = array.reshape(-1)
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE]
        if piece.dtype.kind not in "fc":  # bfloat16
            piece = piece.astype(np.float32)
        wrong = np.flatnonzero(~np.isfinite(piece))
        if len(wrong):
            return tuple(int(i) for i in np.unravel_index(start + wrong[0], array.shape))
    return None
