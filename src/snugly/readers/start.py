"""TensorFlow, loaded without its start-up chatter."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from snugly.errors import missing_tensorflow

if TYPE_CHECKING:
    from collections.abc import Iterator

# What TensorFlow 2.21 writes whenever it is imported, at every log level (port.cc,
# cpu_feature_guard.cc). Beside a message of ours it would read as part of it.
_CHATTER = (
    b"All log messages before absl::InitializeLog()",
    b"oneDNN custom operations are on",
    b"This TensorFlow binary is optimized to use available CPU instructions",
    b"To enable the following instructions:",
)
_STANDARD_ERROR = 2


def load_tensorflow() -> Any:
    """TensorFlow, or an error that names the command that installs it."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        with _without_chatter():
            import tensorflow as tf
    except ImportError as problem:
        raise missing_tensorflow() from problem
    return tf


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Hold back standard error, which C++ writes past Python, and hand on the rest afterwards."""
    if "tensorflow" in sys.modules:
        yield
        return
    with tempfile.TemporaryFile() as held:
        original = os.dup(_STANDARD_ERROR)
        os.dup2(held.fileno(), _STANDARD_ERROR)
        try:
            yield
        finally:
            os.dup2(original, _STANDARD_ERROR)
            os.close(original)
            held.seek(0)
            for line in held:
                if not any(words in line for words in _CHATTER):
                    os.write(_STANDARD_ERROR, line)
