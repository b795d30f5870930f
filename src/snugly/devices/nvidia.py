"""NVIDIA GPUs of this machine, through the driver's management library (NVML).

No driver, no GPU, or a Jetson (whose GPU NVML does not describe) give an empty list. Asking does
not create a CUDA context and takes no memory on the card.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from snugly.devices.device import Device
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterator


def detect_gpus() -> list[Device]:
    """All GPUs the driver shows, as devices named `gpu:0`, `gpu:1`, ….

    CUDA_VISIBLE_DEVICES is not applied: numbers are the driver's, as nvidia-smi shows them.
    """
    with _management_library() as library:
        if library is None:
            return []
        count = library.nvmlDeviceGetCount()
        return [_describe(library, index) for index in range(count)]


@contextmanager
def _management_library() -> Iterator[Any]:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def _describe(library: Any, index: int) -> Device:
    handle = library.nvmlDeviceGetHandleByIndex(index)
    memory = library.nvmlDeviceGetMemoryInfo(handle)
    title = library.nvmlDeviceGetName(handle)
    major, minor = library.nvmlDeviceGetCudaComputeCapability(handle)
    return Device(
        name=f"gpu:{index}",
        title=title.decode() if isinstance(title, bytes) else title,  # bytes before NVML 11.5
        kind="gpu",
        memory=Size(memory.total),
        visible_memory=Size(memory.total),
        free_memory=Size(memory.free),
        compute_capability=(major, minor),
        source="NVML on this machine",
    )
