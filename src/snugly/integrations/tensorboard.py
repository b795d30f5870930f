"""Scalars for TensorBoard: `memory/peak`, `memory/in_use`, `memory/process`, `memory/card`.

They go into a folder of their own. TensorBoard reads the files of a folder one after the other,
and would overlook what is added to a file once a later one has begun.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from snugly.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FOLDER = "memory"
"""The run under a TensorBoard callback's log_dir, beside its `train` and `validation`."""


class Scalars:
    """A writer of `memory/*`, in bytes. The file is made with the first figure."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        self._writer: Any = None

    def write(self, figures: Mapping[str, int], step: int) -> None:
        """Write one point of each figure."""
        import tensorflow as tf

        if self._writer is None:
            self._writer = tf.summary.create_file_writer(self._folder)
        with self._writer.as_default(step=step), tf.summary.record_if(True):
            for name, size in figures.items():
                # float32, as all scalars there: sizes are right to 7 digits.
                tf.summary.scalar(f"memory/{name}", float(size))
        self._writer.flush()  # a run that dies leaves what it has written so far

    def close(self) -> None:
        """Write out what is waiting."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def scalars_for(folder: str | os.PathLike[str] | None, callbacks: Iterable[Any]) -> Scalars | None:
    """Where scalars go: the folder asked for, else beside what Keras's TensorBoard writes.

    None where neither is there.

    Raises:
        MissingDependencyError: A folder was asked for, and TensorBoard is not installed.
    """
    if folder is not None:
        if not is_installed():
            raise MissingDependencyError(
                "writing scalars needs TensorBoard, which is not installed",
                hint="pip install tensorboard",
            )
        return Scalars(folder)
    for callback in callbacks:
        if any(base.__name__ == "TensorBoard" for base in type(callback).__mro__):
            # Joined as text: a log_dir may be the address of a bucket.
            return Scalars(f"{callback.log_dir}/{FOLDER}") if is_installed() else None
    return None


def is_installed() -> bool:
    """Whether TensorFlow can write summaries: their code is TensorBoard's."""
    return find_spec("tensorflow") is not None and find_spec("tensorboard") is not None
