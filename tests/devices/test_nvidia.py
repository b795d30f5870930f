"""GPUs through NVML: described from what the library says; none where there is no driver.

The library's answers are given by a stand-in, because most machines that run this have no GPU;
with one, the last test asks the real library.
"""

from types import SimpleNamespace

import pynvml
import pytest

from snugly.devices.nvidia import _describe, detect_gpus
from snugly.units import Size

MIB = 1024**2


def driver_is_present():
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return False
    pynvml.nvmlShutdown()
    return True


@pytest.mark.parametrize("title", ["NVIDIA H200", b"NVIDIA H200"])
def test_a_gpu_is_described_from_what_the_library_says(title):
    library = SimpleNamespace(
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetMemoryInfo=lambda _: SimpleNamespace(total=143_771 * MIB, free=140_000 * MIB),
        nvmlDeviceGetName=lambda _: title,
        nvmlDeviceGetCudaComputeCapability=lambda _: (9, 0),
    )
    gpu = _describe(library, 0)
    assert (gpu.name, gpu.title, gpu.compute_capability) == ("gpu:0", "NVIDIA H200", (9, 0))
    assert gpu.offered.bytes == Size("138200 MiB")  # free less 1,800 MiB


@pytest.mark.skipif(driver_is_present(), reason="needs a GPU-less machine")
def test_without_a_driver_there_are_no_gpus():
    assert detect_gpus() == []


@pytest.mark.gpu
@pytest.mark.skipif(not driver_is_present(), reason="needs a GPU")
def test_the_real_library_describes_real_gpus():
    assert all(gpu.memory > gpu.offered.bytes > 0 for gpu in detect_gpus())
