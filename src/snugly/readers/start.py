"""TensorFlow, loaded without its start-up chatter."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Any

from snugly.errors import missing_tensorflow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

# What TensorFlow 2.21 writes whenever it is imported, at every log level (port.cc,
# cpu_feature_guard.cc). Beside a message of ours it would read as part of it.
_CHATTER = (
    b"All log messages before absl::InitializeLog()",
    b"oneDNN custom operations are on",
    b"This TensorFlow binary is optimized to use available CPU instructions",
    b"To enable the following instructions:",
)
# What Grappler says of every operator that it places on a GPU where TensorFlow was built without
# one (graph_view.cc, TF 2.18 to 2.21): 300,000 lines for one step of ResNet50.
_PLACED_ON_PAPER = (
    b"OpKernel for GPU devices compatible with node",
    b"(OpKernel was found, but attributes didn't match)",
    b".  Registered:",
    b"  device='",
    b"  <no registered kernels>",
)
_STANDARD_ERROR = 2


def load_tensorflow() -> Any:
    """TensorFlow, or an error that names the command that installs it."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    is_loaded = "tensorflow" in sys.modules
    try:
        with nullcontext() if is_loaded else _without(_CHATTER):
            import tensorflow as tf
    except ImportError as problem:
        raise missing_tensorflow() from problem
    return tf


def placing_on_paper() -> AbstractContextManager[None]:
    """Around work for a GPU that is not here: without what TensorFlow says of each missing kernel.

    Whoever imported TensorFlow has set its log level, and it cannot be raised afterwards.
    """
    return _without(_PLACED_ON_PAPER)


@contextmanager
def _without(chatter: tuple[bytes, ...]) -> Iterator[None]:
    """Hold back standard error, which C++ writes past Python, and hand on the rest afterwards."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        original = os.dup(_STANDARD_ERROR)
        os.dup2(held.fileno(), _STANDARD_ERROR)
        try:
            yield
        finally:
            os.dup2(original, _STANDARD_ERROR)
            os.close(original)
            held.seek(0)
            _hand_on(held, chatter)


def _hand_on(held: IO[bytes], chatter: tuple[bytes, ...]) -> None:
    """All lines that are not chatter; an empty one goes with what stands before it."""
    is_left_out = False
    for line in held:
        if line.strip():
            is_left_out = any(words in line for words in chatter)
        if not is_left_out:
            os.write(_STANDARD_ERROR, line)
