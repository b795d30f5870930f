"""The last finished step of a training, kept in hand for when the guard stops the next one.

A step that is refused in its middle may have changed some weights already, for TensorFlow updates
each as soon as its gradient is there. So what was true before it must be copied before it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy

from snugly.errors import SnuglyError
from snugly.integrations.training_state import trained_variables, write_state

if TYPE_CHECKING:
    import os

KEPT_PART: Final = 8
"""A copy is kept where it takes an eighth of the guard's limit at most."""


class LastStep:
    """A copy of all that a step changes, renewed after each one."""

    def __init__(self, model: Any, save_to: str | os.PathLike[str], limit: int) -> None:
        self._save_to = save_to
        self._position: tuple[int, int] | None = None
        self._copying: tuple[int, int] | None = None
        self._variables: list[tuple[str, Any]] = []
        self._copies: dict[str, numpy.ndarray] = {}
        variables = trained_variables(model)
        if sum(numpy.asarray(one).nbytes for _, one in variables) <= limit // KEPT_PART:
            self._variables = variables

    def note(self, epoch: int, batch: int) -> None:
        """After a step, and before the first: its state is the one to go on from."""
        if not self._variables:
            return
        self._copying = (epoch, batch)
        for name, variable in self._variables:
            value = numpy.asarray(variable)
            if name in self._copies:
                numpy.copyto(self._copies[name], value)
            else:
                self._copies[name] = value.copy()
        self._position, self._copying = self._copying, None

    def write(self) -> None:
        """Put it into the file, when the guard has ended; what goes wrong is told."""
        if self._copying is None and self._position is None:
            return
        try:
            if self._copying is not None:
                # The guard struck between two copies. No step is under way then, so the variables
                # themselves are what the last one left, and the copies are of two steps.
                now = {name: numpy.asarray(variable) for name, variable in self._variables}
                write_state(now, self._save_to, *self._copying)
            elif self._position is not None:
                write_state(self._copies, self._save_to, *self._position)
        except (SnuglyError, MemoryError) as problem:
            warnings.warn(f"the last step could not be saved: {problem}", stacklevel=2)
