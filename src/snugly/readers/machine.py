"""The machine a program is read for: its kernels, and what XLA can compile for it."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

from snugly.devices.software import NEWEST_SEEN, detect_software
from snugly.readers.node import Machine
from snugly.readers.optimise import CPU, GPU
from snugly.readers.placement import as_with_a_gpu
from snugly.readers.start import load_tensorflow


def this_machine() -> Machine:
    """What TensorFlow would run on here: a GPU if it sees one."""
    return gpu_machine() if has_gpu() else cpu_machine()


def cpu_machine() -> Machine:
    """The kernels TensorFlow would choose on this machine's processor."""
    software = detect_software(os.environ)
    return Machine(
        "cpu",
        _onednn(),
        _threads(),
        _tensorflow(),
        software.wide_vectors,
        software.multiplies_bfloat16,
    )


def gpu_machine() -> Machine:
    """The kernels TensorFlow would choose on an NVIDIA GPU."""
    return Machine("gpu", onednn=False, threads=_threads(), tensorflow=_tensorflow())


def _onednn() -> bool:
    """Whether oneDNN's kernels run here: as the variable says, else what TensorFlow itself decides.

    By default it uses them on processors with AVX512_VNNI, AVX512_BF16, AVX_VNNI or AMX alone
    (IsMklEnabled, core/util/port.cc). On others its own convolutions unfold whole images going
    backward, which may be most of a small step's memory.
    """
    stated = os.environ.get("TF_ENABLE_ONEDNN_OPTS")
    if stated is not None:
        return stated.lower() not in {"0", "false"}
    load_tensorflow()
    from tensorflow.python.util import _pywrap_util_port

    return bool(_pywrap_util_port.IsMklEnabled())


def _threads() -> int:
    """As many as TensorFlow starts: one for each core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _tensorflow() -> tuple[int, int]:
    """The installed version, found without importing it: a wrong path is told at once."""
    return detect_software(os.environ).tensorflow_version or NEWEST_SEEN


def has_gpu() -> bool:
    """Whether TensorFlow sees a GPU. Asking makes no context on the card."""
    return bool(load_tensorflow().config.list_physical_devices("GPU"))


def grappler_device(machine: Machine) -> str:
    """The kind of device that Grappler is to optimise for."""
    return GPU if machine.device == "gpu" else CPU


def xla_platform(machine: Machine) -> str:
    """What XLA can compile for here: a GPU's own code only where there is one."""
    return "GPU" if machine.device == "gpu" and has_gpu() else "CPU"


def traced_as_on(machine: Machine) -> AbstractContextManager[None]:
    """While inside, Keras traces what it would on that machine."""
    return as_with_a_gpu() if machine.device == "gpu" else nullcontext()
