"""The most that TensorFlow of another process may take of each GPU, set when it is imported.

A variable alone cannot say it: TensorFlow has one for growth, none for a limit. So the folder
`startup` is put before PYTHONPATH; Python imports its `sitecustomize`, which waits for TensorFlow.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "_SNUGLY_GPU_MEMORY_MIB"
"""Read by startup/sitecustomize.py. Not SNUGLY_…, for those are settings."""

STARTUP: Final = Path(__file__).with_name("startup")
_MIB: Final = 1 << 20


def hooked_environment(memory: int, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables under which Python programs limit their GPUs; what PYTHONPATH had stays."""
    if memory < _MIB:
        raise ValueError("--gpu-memory must be 1 MiB or more")
    paths = [str(STARTUP), environment.get("PYTHONPATH", "")]
    return {
        VARIABLE: str(memory // _MIB),
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }
