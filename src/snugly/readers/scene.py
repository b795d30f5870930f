"""The scene in which programs are built and traced: a graph, where a variable takes no memory."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def graph_scene() -> Iterator[None]:
    """Everything built inside belongs to one graph of its own; nothing is allocated, nothing runs.

    A function traced inside must not notice. TensorFlow asks "was this program started eagerly?" to
    decide, among other things, what `tensor == 0` means there: the comparison, or (as in TensorFlow
    1, which built graphs like ours) whether both are the same object. Our programs were started
    eagerly, so that is what a function is told.
    """
    import tensorflow as tf
    from tensorflow.python.framework import ops

    asked = ops.executing_eagerly_outside_functions

    def in_functions() -> bool:
        return ops.get_default_graph().building_function or asked()

    with tf.Graph().as_default():
        ops.executing_eagerly_outside_functions = in_functions
        try:
            yield
        finally:
            ops.executing_eagerly_outside_functions = asked
