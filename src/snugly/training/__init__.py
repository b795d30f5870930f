"""Programs that train inside a budget: recomputation that gives the same result.

And smaller models, where training may change: pruned, or taught by a larger one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snugly.training.checkpoint import checkpoint, is_checkpointed, undo_checkpoint
from snugly.training.micro_batches import accumulate
from snugly.training.segments import checkpoint_segments

if TYPE_CHECKING:
    from snugly.training.compression.distiller import Distiller
    from snugly.training.compression.plan import PruningPlan
    from snugly.training.compression.pruning import prune, pruning_plan

__all__ = [
    "Distiller",
    "PruningPlan",
    "accumulate",
    "checkpoint",
    "checkpoint_segments",
    "is_checkpointed",
    "prune",
    "pruning_plan",
    "undo_checkpoint",
]

_HOME = {
    "Distiller": "snugly.training.compression.distiller",
    "PruningPlan": "snugly.training.compression.plan",
    "prune": "snugly.training.compression.pruning",
    "pruning_plan": "snugly.training.compression.pruning",
}
"""Where names live that are loaded when they are first used: one is a subclass of Keras's."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOME[name]), name)
    return value
