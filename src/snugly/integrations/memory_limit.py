"""What StopOnMemoryLimit does after each batch; Keras is joined on in keras_callbacks.py."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, SupportsIndex

from snugly.devices.process import ResidentPeak, card_bytes
from snugly.errors import InputError, MemoryLimitExceeded
from snugly.guarding.enclosure import ENCLOSURE
from snugly.guarding.policy import pressure_at
from snugly.integrations.last_step import LastStep
from snugly.integrations.reading import card_of, chosen_device
from snugly.integrations.training_state import Resumed, restore_state, save_state
from snugly.recording.allocator import Peak
from snugly.units import Size

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

_WATCHED: Final = {
    "process": "the process occupied",
    "device": "{device}'s allocator had handed out",
    "card": "the process occupied, on the card of {device},",
}


@dataclass(frozen=True, slots=True)
class StoppedBy:
    """Why training was stopped. Epochs and batches count from 0, as Keras's hooks do."""

    watch: str
    measured: Size
    limit: Size
    epoch: int
    batch: int | None  # None where it was seen at the end of the epoch, after validation
    message: str

    def __str__(self) -> str:
        return self.message


class Limiting:
    """Stops training at the batch after which a limit has been exceeded, and says so.

    ::

        model.fit(x, y, callbacks=[snugly.StopOnMemoryLimit("14GiB")])

    The model stays as it is after that batch, and `fit` returns as usual; `stopped_by` then says
    why. It looks between batches: what grows from batch to batch is stopped in time, but a single
    step that asks for too much fails before anybody can look. It does not prevent running out of
    memory.

    A peak within a batch counts, even if the memory is free again when the batch ends.

    With `save_to`, weights, optimizer and position are saved when training begins, after every
    epoch, and after the last finished batch before it stops; `resume` goes on from there.

    Args:
        limit: `"14GiB"`, `"500 MB"`, or a number of bytes; without one, that of the guard around
            the training (`snugly.guard`), which is met a little before the guard raises.
        save_to: A file for the state of the training, `training.npz`.
        watch: "process": what the process occupies of the host's memory; "device": what
            TensorFlow's allocator has handed out on the device; "card": what the process occupies
            on the GPU, as the driver says.
        device: "GPU:1", …; by default "GPU:0" if TensorFlow has one, else "CPU:0".
        action: "stop" ends training with a warning; "raise" raises `MemoryLimitExceeded`.
    """

    # Keras would otherwise run the hook later, on a thread, and training would go on meanwhile.
    async_safe = False

    def __init__(
        self,
        limit: str | SupportsIndex | None = None,
        *,
        save_to: str | os.PathLike[str] | None = None,
        watch: Literal["process", "device", "card"] = "process",
        device: str | None = None,
        action: Literal["stop", "raise"] = "stop",
    ) -> None:
        super().__init__()
        if watch not in _WATCHED:
            raise InputError(
                f"watch={watch!r} is not known", hint='give "process", "device" or "card"'
            )
        if action not in {"stop", "raise"}:
            raise InputError(f"action={action!r} is not known", hint='give "stop" or "raise"')
        self.limit = None if limit is None else Size(limit)
        self.save_to = save_to
        self.watch = watch
        self.device = device
        self.action = action
        self.stopped_by: StoppedBy | None = None
        self._measure: Callable[[], int | None] | None = None
        self._epoch = 0
        self._bound = Size(0)
        self._saved = False
        self._last: LastStep | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Called by Keras."""
        del logs
        self.stopped_by = None
        self._measure = measure_of(self.watch, chosen_device(self.device))
        self._bound = self._chosen_limit()
        self._saved = False
        if self.save_to is not None and ENCLOSURE.active:
            self._last = LastStep(self.model, self.save_to, ENCLOSURE.limit)  # pyright: ignore[reportAttributeAccessIssue] - Keras's
            ENCLOSURE.savers[id(self)] = self._last.write

    def on_train_end(self, logs: Any = None) -> None:
        """Called by Keras where training ends by itself."""
        del logs
        ENCLOSURE.savers.pop(id(self), None)
        self._last = None

    def _chosen_limit(self) -> Size:
        """The limit that was stated, or where the guard around the training begins to press."""
        if self.limit is not None:
            return self.limit
        if not ENCLOSURE.active:
            raise InputError(
                "StopOnMemoryLimit has no limit, and there is no guard around the training",
                hint='StopOnMemoryLimit("14GiB"), or train inside `with snugly.guard("14GiB"):`',
            )
        self._measure = lambda: ENCLOSURE.look().held
        return Size(pressure_at(ENCLOSURE.limit))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Called by Keras."""
        del logs
        self._epoch = epoch
        if self.save_to is not None and not self._saved:
            self._saved = True
            save_state(self.model, self.save_to, epoch, 0)  # pyright: ignore[reportAttributeAccessIssue] - Keras's
        self._note(epoch, 0)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Called by Keras."""
        del logs
        self._note(self._epoch, batch + 1)
        self._look(batch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Called by Keras, after validation."""
        del logs
        if self.save_to is not None and self.stopped_by is None:
            save_state(self.model, self.save_to, epoch + 1, 0)  # pyright: ignore[reportAttributeAccessIssue] - Keras's
        self._look(None)

    @staticmethod
    def resume(model: Any, save_to: str | os.PathLike[str]) -> Resumed:
        """Bring a model into the state that was saved, and say where its training goes on.

        ::

            at = snugly.StopOnMemoryLimit.resume(model, "training.npz")
            model.fit(batches.skip(at.batch), initial_epoch=at.epoch, epochs=at.epoch + 1)
            model.fit(batches, initial_epoch=at.epoch + 1, epochs=10)
        """
        return restore_state(model, save_to)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {
            "_measure": None,
            "_model": None,
            "_last": None,
        }  # those of a run under way

    def _note(self, epoch: int, batch: int) -> None:
        if self._last is not None:
            self._last.note(epoch, batch)

    def _look(self, batch: int | None) -> None:
        measured = self._measure() if self._measure is not None else None
        if measured is None or measured <= self._bound or self.stopped_by is not None:
            return
        self.stopped_by = self._reason(Size(measured), batch)
        if self.save_to is not None and batch is not None:
            save_state(self.model, self.save_to, self._epoch, batch + 1)  # pyright: ignore[reportAttributeAccessIssue] - Keras's
        if self.action == "raise":
            raise MemoryLimitExceeded(self.stopped_by.message)
        self.model.stop_training = True  # pyright: ignore[reportAttributeAccessIssue] - Keras's
        warnings.warn(self.stopped_by.message, stacklevel=2)

    def _reason(self, measured: Size, batch: int | None) -> StoppedBy:
        where = (
            f"epoch {self._epoch + 1}"
            if batch is None
            else (f"batch {batch + 1} of epoch {self._epoch + 1}")
        )
        holder = _WATCHED[self.watch].format(device=chosen_device(self.device))
        message = (
            f"training stopped after {where}: {holder} {measured} (measured),"
            f" over the limit of {self._bound}"
        )
        return StoppedBy(self.watch, measured, self._bound, self._epoch, batch, message)


def measure_of(watch: str, device: str) -> Callable[[], int | None]:
    """How to measure what is watched, from now on.

    Raises:
        InputError: Nobody keeps that figure here.
    """
    if watch == "process":
        return ResidentPeak().read
    if watch == "device":
        peak = Peak(device)
        if peak.read() is None:
            raise InputError(
                f"TensorFlow keeps no memory figures for {device} here",
                hint='watch="process" watches the process instead; on a CPU,'
                " TF_CPU_ALLOCATOR_USE_BFC=1 set before TensorFlow is started brings the figures",
            )
        return peak.read
    card = card_of(device)
    if not device.startswith("GPU") or card_bytes(card) is None:
        raise InputError(
            f"NVIDIA's driver does not say what this process occupies on {device}",
            hint='watch="device" watches TensorFlow\'s allocator instead',
        )
    return lambda: card_bytes(card)
