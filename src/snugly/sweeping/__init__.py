"""Many predictions at once: models × batch sizes × devices, as a table, on an engine."""

from snugly.sweeping.sweep import sweep
from snugly.sweeping.table import Largest, Refusal, Row, Sweep

__all__ = ["Largest", "Refusal", "Row", "Sweep", "sweep"]
