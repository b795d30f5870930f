"""Programs that train inside a budget: recomputation that gives the same result."""

from __future__ import annotations

from snugly.training.checkpoint import checkpoint, is_checkpointed, undo_checkpoint
from snugly.training.micro_batches import accumulate
from snugly.training.segments import checkpoint_segments

__all__ = [
    "accumulate",
    "checkpoint",
    "checkpoint_segments",
    "is_checkpointed",
    "undo_checkpoint",
]
