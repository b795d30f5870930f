"""What would fit instead, by prediction alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.predicting.prediction import Prediction

ATTEMPTS = 3


def suggest_batch_size(
    prediction: Prediction, batch_size: int, at: Callable[[int], Prediction]
) -> tuple[str, ...]:
    """The largest batch that surely fits, as a hint.

    Memory grows almost linearly with the batch, so a line through two predictions finds the
    candidate and a third confirms it. Never says that something fits without having predicted it.
    """
    budget = prediction.budget
    if budget is None or batch_size == 1:
        return ("not even one example at a time fits with nothing else changed",)
    least = at(1)
    if least.verdict != "fits":
        return (f"not even batch_size=1 surely fits: it needs {least.high} at most",)
    slope = (int(prediction.high) - int(least.high)) / (batch_size - 1)
    candidate = batch_size - 1
    if slope > 0:
        candidate = min(candidate, 1 + int((int(budget.bytes) - int(least.high)) / slope))
    for _ in range(ATTEMPTS):
        if candidate <= 1:
            break
        if at(candidate).verdict == "fits":
            return (f"batch_size={candidate} fits with nothing else changed",)
        candidate = int(candidate * 0.95) - 1
    return ("batch_size=1 fits with nothing else changed",)
