"""What a CUDA kernel may use to be started on a device, and whether a given one can.

A kernel is started in blocks of threads, and a block must find its threads, registers and shared
memory on one multiprocessor. One that asks for more is refused with "too many resources requested
for launch" (CUDA error 701). That is a property of the kernel and the chip: free memory, batch
size and memory growth have nothing to do with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.units import Size

if TYPE_CHECKING:
    from snugly.devices.device import Device

WARP: Final = 32
"""Threads that run in step, on every NVIDIA GPU so far."""

LARGEST_BLOCK: Final = 1024
"""Threads a block, compute capability 2.0 and above (CUDA C++ Programming Guide, Technical
Specifications per Compute Capability)."""

REGISTERS_GIVEN_AT_ONCE: Final = 256
"""Registers are given to whole warps in portions of this size; compute capability 3 to 9
(cudaOccRegAllocationGranularity in NVIDIA's cuda_occupancy.h)."""

MOST_REGISTERS_A_THREAD: Final = 255
"""Compute capability 3.5 and above (CUDA C++ Programming Guide)."""

DETERMINANT_THREADS: Final = 1024
"""Threads a block with which TensorFlow starts DeterminantFromPivotedLUKernel, whatever the
kernel's registers: `std::min(1024, d.maxGpuThreadsPerBlock())` in GetGpuLaunchConfig
(tensorflow/core/util/gpu_launch_config.h), called in
tensorflow/core/kernels/determinant_op_gpu.cu.cc and wrapped in TF_CHECK_OK, so that a refused
launch aborts the process. The batch size changes the number of blocks, never that of threads."""

SMALL_REGISTER_FILES: Final = frozenset({(5, 3), (6, 2)})
"""Compute capabilities (Jetson Nano and TX1; TX2) that give a block 32,768 registers; all others
from 5.0 on give 65,536 (CUDA C++ Programming Guide; the same by ptxas)."""

REGISTERS_TO_RELY_ON: Final = 65536
"""Registers a block at which a kernel that the compiler was free to give 64 registers a thread
still starts with 1,024 threads."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Whether a kernel can be started, and if not, what it asks too much of.

    True where it can: `if can_launch(…): …`.
    """

    refused: str | None = None
    """`threads`, `registers` or `shared memory`; None where it can be started."""
    asked: int = 0
    allowed: int = 0

    def __bool__(self) -> bool:
        return self.refused is None

    @property
    def reason(self) -> str:
        """What is asked for and what there is; empty where it can be started."""
        if self.refused is None:
            return ""
        if self.refused == "shared memory":
            return f"{Size(self.asked)} of shared memory a block, {Size(self.allowed)} allowed"
        return f"{self.asked:,} {self.refused} a block, {self.allowed:,} allowed"


def partitions_of(capability: tuple[int, int] | None) -> int:
    """Parts of a multiprocessor; a block's warps are counted up to a multiple of them.

    The hardware's check assumes that registers are given in all parts at once
    (cudaOccMaxBlocksPerSMRegsLimit and cudaOccSubPartitionsPerMultiprocessor in NVIDIA's
    cuda_occupancy.h): 2 parts on compute capability 6.0, else 4.
    """
    return 2 if capability == (6, 0) else 4


def registers_of(device: Device) -> int | None:
    """Registers a block: as the device says, else by its compute capability; None if unknown."""
    if device.registers_per_block is not None:
        return device.registers_per_block
    capability = device.compute_capability
    if capability is None or capability < (5, 0):
        return None
    return REGISTERS_TO_RELY_ON // (2 if capability in SMALL_REGISTER_FILES else 1)


def registers_taken(
    registers_per_thread: int, threads: int, capability: tuple[int, int] | None = None
) -> int:
    """Registers that one block takes, as the hardware counts before it starts one."""
    warps = -(-threads // WARP)
    parts = partitions_of(capability)
    counted = -(-warps // parts) * parts
    portions = -(-registers_per_thread * WARP // REGISTERS_GIVEN_AT_ONCE)
    return counted * portions * REGISTERS_GIVEN_AT_ONCE


def can_launch(
    device: Device, registers_per_thread: int, threads: int, shared_memory: int = 0
) -> Launch:
    """Whether a kernel can be started on the device with so many threads a block.

    Unknown limits of the device refuse nothing. Shared memory is what the kernel declares; what
    is asked for at run time is not known here and not judged.
    """
    if threads > LARGEST_BLOCK:
        return Launch("threads", threads, LARGEST_BLOCK)
    taken = registers_taken(registers_per_thread, threads, device.compute_capability)
    registers = registers_of(device)
    if registers is not None and taken > registers:
        return Launch("registers", taken, registers)
    limit = device.shared_memory_per_block
    if limit is not None and shared_memory > limit:
        return Launch("shared memory", shared_memory, int(limit))
    return Launch()


def most_registers(device: Device, threads: int = LARGEST_BLOCK) -> int | None:
    """Registers a thread may use at most, for a block of so many threads; None where unknown."""
    if registers_of(device) is None:
        return None
    tried = range(MOST_REGISTERS_A_THREAD, 0, -1)
    return next((number for number in tried if can_launch(device, number, threads)), 0)


def most_threads(device: Device, registers_per_thread: int, shared_memory: int = 0) -> int:
    """The largest block with which such a kernel starts, in whole warps; 0 where none does."""
    tried = range(LARGEST_BLOCK, 0, -WARP)
    return next(
        (
            threads
            for threads in tried
            if can_launch(device, registers_per_thread, threads, shared_memory)
        ),
        0,
    )


def launch_limit_in_words(device: Device) -> str | None:
    """What the registers of a block mean for kernels, in a sentence; None where not known."""
    registers = most_registers(device)
    if registers is None:
        return None
    sentence = f"at {LARGEST_BLOCK:,} threads a kernel may use {registers} registers"
    usual = REGISTERS_TO_RELY_ON // LARGEST_BLOCK
    if registers >= usual:
        return sentence
    return (
        f"{sentence}, not {usual} as on most chips; one that uses more fails with"
        " 'too many resources requested for launch', whatever memory is free"
    )


def determinant_kernel_can_launch(device: Device) -> bool | None:
    """Whether TensorFlow's GPU kernel for det and slogdet can be relied on to start there.

    None where the device's registers a block are not known, and where it has no CUDA GPU. False
    does not say that every build fails: how many registers the kernel uses depends on the type
    and the compiler (TensorFlow 2.21 compiled for sm_60: 30 to 32 for float32, float64 and
    complex64, 48 for complex128; for sm_90 33 to 47), TensorFlow does not look, and a refused
    launch ends the process.
    """
    registers = registers_of(device)
    if device.compute_capability is None or registers is None:
        return None
    return registers >= REGISTERS_TO_RELY_ON


def board_has_few_registers(board: str) -> bool:
    """Whether a board of this name gives a block half the registers of other chips.

    NVML does not show the GPU of these boards; the device tree has their names. A Jetson Orin
    Nano is another chip.
    """
    words = board.lower().split()
    return "jetson" in words and bool({"nano", "tx1", "tx2"} & set(words)) and "orin" not in words
