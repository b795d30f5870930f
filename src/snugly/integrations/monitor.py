"""What MemoryMonitor does at each step of training; Keras is joined on in keras_callbacks.py."""

from __future__ import annotations

import inspect
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from snugly.errors import InputError
from snugly.integrations.reading import Reading, chosen_device, read
from snugly.integrations.tensorboard import Scalars, scalars_for
from snugly.recording.allocator import Peak
from snugly.units import BINARY_UNITS, Size

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from rich.console import RenderableType

PREFIX: Final = "memory_"
_FRAMES: Final = 8  # how far up a CallbackList is looked for: subclasses may stand between


class Monitoring:
    """Puts what training holds into `logs`, for History, CSVLogger, the progress bar, TensorBoard.

    ::

        model.fit(x, y, callbacks=[snugly.MemoryMonitor()])

    Keys, all of them measured, in bytes unless `unit` says otherwise; one that nobody keeps here
    is left out:

    - `memory_peak`: the most the device's allocator had handed out at once during the epoch;
    - `memory_in_use`: what it has handed out now;
    - `memory_process`: what the process occupies of the host's memory now;
    - `memory_card`: on a GPU, what the process occupies of the card now (NVML).

    On a CPU, TensorFlow's allocator counts requests below 256 KiB only if
    `TF_CPU_ALLOCATOR_USE_BFC=1` was set before TensorFlow was started.

    It moves itself to the front of the callbacks, so that those before it see its keys as well.
    Where it cannot (a list that is not Keras's), put it first.

    Args:
        device: "CPU:0", "GPU:1", …; by default "GPU:0" if TensorFlow has one, else "CPU:0".
        per_epoch: Whether each epoch has a peak of its own. TensorFlow keeps one peak a device,
            which this resets at the start of each epoch; a recording by Snugly is not disturbed,
            other readers of `get_memory_info` are. Otherwise: the peak since TensorFlow began.
        batches: Whether the keys are put into the logs of batches as well as of epochs.
        unit: "B", "KiB", "MiB" or "GiB", for the logs alone.
        log_dir: Where to write `memory/*` for TensorBoard, in bytes. By default beside what
            Keras's TensorBoard callback writes, in `memory`, where that callback is used.
        update_freq: "epoch", or "batch" to write to TensorBoard after every batch.
    """

    # Keras may run batch hooks on threads, unless a callback forbids it: training then need not
    # wait for a batch's losses. Nothing here depends on the order of batches.
    async_safe = True

    def __init__(  # noqa: PLR0913 - settings, all but the first by name
        self,
        device: str | None = None,
        *,
        per_epoch: bool = True,
        batches: bool = True,
        unit: str = "B",
        log_dir: str | os.PathLike[str] | None = None,
        update_freq: Literal["epoch", "batch"] = "epoch",
    ) -> None:
        super().__init__()
        if unit not in BINARY_UNITS:
            raise InputError(
                f"{unit!r} is not a unit for the logs",
                hint=f"give one of {', '.join(BINARY_UNITS)}",
            )
        if update_freq not in {"epoch", "batch"}:
            raise InputError(
                f"update_freq={update_freq!r} is not known", hint='give "epoch" or "batch"'
            )
        self.device = device
        self.per_epoch = per_epoch
        self.batches = batches
        self.unit = unit
        self.log_dir = log_dir
        self.update_freq = update_freq
        self.epochs: list[Reading] = []  # of the last fit, one an epoch
        self._neighbours: list[Any] = []
        self._scalars: Scalars | None = None
        self._peak: Peak | None = None
        self._steps = count()

    @property
    def peak(self) -> Size | None:
        """The highest `memory_peak` of all epochs; None as long as there is none."""
        peaks = [reading.peak for reading in self.epochs if reading.peak is not None]
        return Size(max(peaks)) if peaks else None

    def set_model(self, model: Any) -> None:
        """Called by Keras when the callbacks are put together."""
        super().set_model(model)  # pyright: ignore[reportAttributeAccessIssue] - Keras's
        self._neighbours = move_to_front(self)

    def on_train_begin(self, logs: Any = None) -> None:
        """Called by Keras."""
        del logs
        self.epochs = []
        self._steps = count()
        self._scalars = scalars_for(self.log_dir, self._neighbours)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Called by Keras."""
        del epoch, logs
        if self.per_epoch:
            self._peak = Peak(chosen_device(self.device))

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        del batch
        wanted = self._scalars is not None and self.update_freq == "batch"
        if not (self.batches or wanted):
            return
        reading = self._read()
        if self.batches and logs is not None:
            logs.update(self._entries(reading))
        if wanted and self._scalars is not None:
            self._scalars.write(reading.known(), next(self._steps))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        reading = self._read()
        self.epochs.append(reading)
        if logs is not None:
            logs.update(self._entries(reading))
        if self._scalars is not None and self.update_freq == "epoch":
            self._scalars.write(reading.known(), epoch)

    def on_train_end(self, logs: Any = None) -> None:
        """Called by Keras."""
        del logs
        if self._scalars is not None:
            self._scalars.close()

    def summary(self) -> None:
        """Print a table with a row for each epoch of the last `fit`."""
        from snugly.reporting.terminal import show

        show(draw_epochs(self.epochs))

    def __getstate__(self) -> dict[str, Any]:
        # What belongs to a run that is under way stays behind: writers and other callbacks.
        return self.__dict__ | {"_neighbours": [], "_scalars": None, "_peak": None, "_model": None}

    def _read(self) -> Reading:
        return read(chosen_device(self.device), self._peak)

    def _entries(self, reading: Reading) -> Mapping[str, float]:
        factor = 1024 ** BINARY_UNITS.index(self.unit)
        return {
            PREFIX + name: size if factor == 1 else size / factor
            for name, size in reading.known().items()
        }


def move_to_front(callback: Any) -> list[Any]:
    """Make a callback the first of the list that is being put together, and give all of it.

    Keras hands the same `logs` to one callback after the other. The list makes itself known only
    by calling `set_model`, so it is looked for among the callers; a new list replaces the one
    that is being gone through.
    """
    frame = inspect.currentframe()
    for _ in range(_FRAMES):
        frame = frame.f_back if frame is not None else None
        if frame is None:
            break
        owner: Any = frame.f_locals.get("self")
        entries = getattr(owner, "callbacks", None)
        if isinstance(entries, list) and any(entry is callback for entry in entries):
            owner.callbacks = [callback, *(entry for entry in entries if entry is not callback)]
            return owner.callbacks
    return []


def draw_epochs(epochs: list[Reading]) -> RenderableType:
    """A table with a row for each epoch."""
    from snugly.reporting.terminal import make_table

    columns = ("peak", "in use", "process", "card")
    table = make_table("measured in epoch", *columns, right=("measured in epoch", *columns))
    for number, reading in enumerate(epochs, start=1):
        sizes = (reading.peak, reading.in_use, reading.process, reading.card)
        texts = ("" if size is None else str(Size(size)) for size in sizes)
        table.add_row(str(number), *texts)
    return table
