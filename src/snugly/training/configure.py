"""configure: how TensorFlow takes the memory of GPUs, said once, the same for all of them.

TensorFlow takes nearly all of every GPU at the first tensor unless told otherwise, and it can be
told only before that. What is decided here is decided by plain functions; what talks to TensorFlow
is `_apply`, a few lines.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, SupportsIndex

from snugly.errors import InputError, SnuglyError, missing_tensorflow
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MEBIBYTE: Final = 2**20  # the unit of LogicalDeviceConfiguration's memory_limit

FORCE_GROWTH: Final = "TF_FORCE_GPU_ALLOW_GROWTH"
"""Overrides growth set in the program, either way (GPUBFCAllocator::GetAllowGrowthValue,
tensorflow/core/common_runtime/gpu/gpu_bfc_allocator.cc, TF 2.21)."""

ALLOCATOR: Final = "TF_GPU_ALLOCATOR"
"""cuda_malloc_async replaces TensorFlow's own allocator (gpu_process_state.cc, TF 2.21)."""

_TRUE: Final = frozenset(("true", "1"))
_FALSE: Final = frozenset(("false", "0"))


class NoGpuWarning(UserWarning):
    """There was nothing to configure: TensorFlow sees no GPU here."""


@dataclass(frozen=True, slots=True)
class Configured:
    """What was set, and for which GPUs.

    `setting` is "growth", "limit", or "nothing" where there is no GPU. `notes` tell of variables in
    the environment that act beside it.
    """

    setting: Literal["growth", "limit", "nothing"]
    gpus: tuple[str, ...]
    memory: Size | None = None
    """The limit of each GPU, in whole MiB as TensorFlow counts it."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as TensorFlow names it, with its memory where that is known."""

    name: str
    memory: Size | None = None


def configure(
    *, memory: str | SupportsIndex | None = None, growth: bool | None = None
) -> Configured:
    """Set how TensorFlow takes the memory of every visible GPU, before it touches one.

    Args:
        memory: A limit for each GPU: TensorFlow never takes more, and fails inside it instead of
            pushing others out. What CUDA itself takes (some 500 MiB) is beside it.
        growth: Take what is needed as it is needed; nothing is given back before the program ends.

    Returns what was set. Without a GPU nothing is set, with a warning. A second call with the same
    settings is harmless. `CUDA_VISIBLE_DEVICES` and `tf.config.set_visible_devices` are respected.

    Raises:
        InputError: Both or neither are given, the limit is more than a GPU has, or the GPUs are
            already in use and cannot be changed.
    """
    limit = decide_limit(memory, growth)
    tensorflow = _tensorflow()
    gpus = _visible(tensorflow)
    if not gpus:
        warnings.warn(
            "[SNG555] TensorFlow sees no GPU here: nothing was set", NoGpuWarning, stacklevel=2
        )
        return Configured("nothing", (), limit, ("there is no GPU",))
    if limit is not None:
        check_limit(limit, _described(gpus))
    setting: Literal["growth", "limit"] = "growth" if limit is None else "limit"
    notes = notes_on(os.environ, setting)
    if not _is_set(tensorflow, gpus, limit):
        _apply(tensorflow, gpus, limit)
    return Configured(setting, tuple(gpu.name for gpu in gpus), limit, notes)


def decide_limit(memory: str | SupportsIndex | None, growth: bool | None) -> Size | None:
    """The limit that was asked for in whole MiB, or None for growth; refuses what is neither."""
    if memory is not None and growth:
        raise InputError("memory and growth are both given", code="SNG553")
    if memory is None:
        if growth is None:
            raise InputError("neither memory nor growth is given", code="SNG553")
        if not growth:
            raise InputError(
                "growth=False is what TensorFlow does anyway: it takes all of the GPU",
                code="SNG553",
                hint="leave the call out, or give snugly.configure(memory='6GiB')",
            )
        return None
    limit = Size(memory)
    whole = Size(limit // MEBIBYTE * MEBIBYTE)
    if whole == 0:
        raise InputError(
            f"a limit of {limit} is less than the 1 MiB that TensorFlow counts in",
            code="SNG554",
            hint="give a size such as memory='6GiB'",
        )
    return whole


def check_limit(limit: Size, gpus: Sequence[Gpu]) -> None:
    """Refuse a limit that some GPU does not have; one whose memory is not known is let pass."""
    known = [(gpu.memory, gpu.name) for gpu in gpus if gpu.memory is not None]
    if known:
        smallest, name = min(known)
        if limit > smallest:
            raise InputError(
                f"{limit} is asked for on each GPU; {name} has {smallest} (measured)",
                code="SNG554",
            )


def notes_on(
    environment: Mapping[str, str], setting: Literal["growth", "limit"]
) -> tuple[str, ...]:
    """What variables of the environment do to this setting."""
    notes = []
    forced = environment.get(FORCE_GROWTH, "").strip().lower()
    if setting == "growth" and forced in _FALSE:
        raise InputError(
            f"{FORCE_GROWTH}={environment[FORCE_GROWTH]} forbids growth, whatever a program sets",
            code="SNG553",
            hint=f"unset {FORCE_GROWTH}, or set it to true",
        )
    if setting == "limit" and forced in _TRUE:
        notes.append(f"{FORCE_GROWTH} is set: each GPU's memory grows up to the limit")
    if environment.get(ALLOCATOR, "").strip() == "cuda_malloc_async":
        notes.append(
            f"{ALLOCATOR}=cuda_malloc_async takes memory as it is needed"
            + ("" if setting == "growth" else "; the limit bounds its pool")
        )
    return tuple(notes)


def already_in_use(reason: str) -> SnuglyError:
    """The error in place of TensorFlow's own."""
    return InputError(
        f"the GPUs are already in use, and how their memory is taken is fixed ({reason})",
        code="SNG552",
    )


def _tensorflow() -> Any:
    loaded = sys.modules.get("tensorflow")
    if loaded is not None:
        return loaded
    try:
        import tensorflow
    except ImportError:
        raise missing_tensorflow() from None
    return tensorflow


def _visible(tensorflow: Any) -> list[Any]:
    # Neither call makes a CUDA context, so asking does not touch the GPUs.
    return list(tensorflow.config.get_visible_devices("GPU"))


def memory_of_gpus(
    count: int, cards: Sequence[Size], environment: Mapping[str, str]
) -> list[Size | None]:
    """What each of TensorFlow's GPUs has, from the driver's list of cards; None where unsure.

    The driver counts cards by bus, TensorFlow those of CUDA_VISIBLE_DEVICES, fastest first. Where
    all cards are alike it does not matter; else only plain numbers in bus order are believed.
    """
    if len(set(cards)) == 1:
        return [cards[0]] * count
    names = environment.get("CUDA_VISIBLE_DEVICES", "").split(",")
    by_bus = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    if not by_bus or len(names) < count or not all(name.strip().isdecimal() for name in names):
        return [None] * count
    places = [int(name) for name in names[:count]]
    return [cards[place] if place < len(cards) else None for place in places]


def _described(gpus: Sequence[Any]) -> list[Gpu]:
    from snugly.devices.nvidia import detect_gpus

    cards = [card.memory for card in detect_gpus()]
    memory = memory_of_gpus(len(gpus), cards, os.environ)
    return [Gpu(gpu.name, known) for gpu, known in zip(gpus, memory, strict=True)]


def _is_set(tensorflow: Any, gpus: Sequence[Any], limit: Size | None) -> bool:
    """Whether this very setting is in force, so that asking twice is no error."""
    config = tensorflow.config
    try:
        if limit is None:
            return all(config.experimental.get_memory_growth(gpu) is True for gpu in gpus)
        found = [config.get_logical_device_configuration(gpu) for gpu in gpus]
    except (ValueError, RuntimeError):
        return False
    wanted = limit // MEBIBYTE
    return all(
        parts is not None and len(parts) == 1 and parts[0].memory_limit == wanted for parts in found
    )


def _apply(tensorflow: Any, gpus: Sequence[Any], limit: Size | None) -> None:
    config = tensorflow.config
    try:
        for gpu in gpus:
            if limit is None:
                config.experimental.set_memory_growth(gpu, True)
            else:
                if config.experimental.get_memory_growth(gpu):
                    # Set earlier; TensorFlow refuses a limit beside it.
                    config.experimental.set_memory_growth(gpu, False)
                part = config.LogicalDeviceConfiguration(memory_limit=limit // MEBIBYTE)
                config.set_logical_device_configuration(gpu, [part])
    except RuntimeError as error:
        # "Physical devices cannot be modified after being initialized", "Virtual devices cannot …"
        raise already_in_use("TensorFlow was asked for a tensor or a device before") from error
    except ValueError as error:
        # "Cannot set memory growth on device when virtual devices configured", and the reverse.
        raise InputError(
            "this program has already set the GPUs' memory in another way",
            code="SNG553",
            hint="call snugly.configure once, and remove other calls to tf.config about memory",
        ) from error
