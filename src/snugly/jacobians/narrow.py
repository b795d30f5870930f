"""A result kept in fewer bits: half the memory, and what it costs, measured on some rows.

The derivative is computed in the function's own precision and rounded as it is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError
from snugly.jacobians.subject import tensorflow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.jacobians.known import Known
    from snugly.jacobians.plan import Plan
    from snugly.jacobians.subject import Subject

_SAMPLES: Final = 4
_NARROWER: Final = ("bfloat16", "float16", "float32")


def narrow_type(precision: str | None, subject: Subject) -> Any:
    """TensorFlow's type for a precision that was asked for; None where results keep their own."""
    if precision is None:
        return None
    if precision not in _NARROWER:
        raise InputError(
            f"there is no precision {precision!r} to keep a Jacobian in",
            code="SNG529",
            hint=f"precision is one of {', '.join(_NARROWER)}",
        )
    if any(leaf.dtype.is_complex for leaf in subject.sources):
        raise InputError("complex results have no narrower type", code="SNG529")
    narrow = getattr(tensorflow(), precision)
    return None if all(leaf.dtype == narrow for leaf in subject.sources) else narrow


def rounding_note(
    about: Known, plan: Plan, leaves: Sequence[Any], found: Sequence[Sequence[Any]], narrow: Any
) -> str:
    """How far stored entries are from computed ones, relative to the largest of their line."""
    tf = tensorflow()
    worst = 0.0
    portion = max(plan.portions, key=lambda p: p.lines.count)
    lines = portion.lines
    program = about.step(lines, 1, vectorised=False)
    numbers = np.unique(np.linspace(0, lines.count - 1, _SAMPLES).astype(int))
    for number in numbers:
        for across, exact in enumerate(program(list(leaves), tf.constant(int(number)))):
            wide = exact.numpy().astype(np.float64)
            kept = tf.cast(tf.cast(exact, narrow), exact.dtype).numpy().astype(np.float64)
            largest = np.abs(wide).max(initial=0.0)
            if (
                largest > 0
                and found[0 if lines.mode == "forward" else lines.leaf][across] is not None
            ):
                worst = max(worst, float(np.abs(wide - kept).max() / largest))
    return (
        f"kept in {narrow.name}: entries are off by up to {worst:.1e} of their line's largest"
        f" (measured on {len(numbers)} of {lines.count} lines)"
    )
