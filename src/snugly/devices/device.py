"""Device: what is known of a machine, and what of its memory a program can have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from snugly.devices.budget import Budget
from snugly.devices.reserve import (
    CUDA_CONTEXT_SHARE,
    TENSORFLOW_PROCESS,
    system_share,
    tensorflow_gpu_reserve,
)
from snugly.units import Size

Kind: TypeAlias = Literal["gpu", "shared-memory-gpu", "cpu", "microcontroller"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class RamBlock:
    """One contiguous range of a microcontroller's RAM; an arena lies in exactly one."""

    name: str
    size: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One entry of the catalogue, or a GPU of this machine."""

    name: str
    title: str
    kind: Kind
    memory: Size
    """What is sold or built in."""
    source: str
    """Where the figures were read."""
    verified: bool = True
    """False where nobody has read the figures in a datasheet or a log yet."""
    visible_memory: Size | None = None
    """What the driver or the operating system reports, where that is known."""
    free_memory: Size | None = None
    """What is free now; only known of a device of this machine."""
    tensorflow_memory: Size | None = None
    """The limit TensorFlow gave its allocator on such a device, where somebody measured it."""
    compute_capability: tuple[int, int] | None = None
    registers_per_block: int | None = None
    shared_memory_per_block: Size | None = None
    flash: Size | None = None
    ram_blocks: tuple[RamBlock, ...] = ()

    @property
    def offered(self) -> Budget:
        """What the allocator of TensorFlow (of TFLite Micro, on a microcontroller) can have."""
        match self.kind:
            case "gpu":
                return self._offered_by_gpu()
            case "shared-memory-gpu":
                return self._offered_by_shared_memory()
            case "cpu":
                return self._offered_by_small_computer()
            case "microcontroller":
                return self._offered_by_microcontroller()

    def _offered_by_gpu(self) -> Budget:
        if self.tensorflow_memory is not None:
            return self._budget(self.tensorflow_memory, "measured")
        if self.free_memory is not None:
            free, provenance = self.free_memory, "predicted"
        else:
            total = self.visible_memory or self.memory
            free, provenance = total - total.times(CUDA_CONTEXT_SHARE), "assumed"
        reserve = tensorflow_gpu_reserve(free, self.compute_capability or (0, 0))
        return self._budget(free - reserve, provenance)

    def _offered_by_shared_memory(self) -> Budget:
        total = self.visible_memory or self.memory
        free = total - system_share(total) - TENSORFLOW_PROCESS
        reserve = tensorflow_gpu_reserve(free, self.compute_capability or (0, 0))
        return self._budget(free - reserve, "assumed")

    def _offered_by_small_computer(self) -> Budget:
        total = self.visible_memory or self.memory
        return self._budget(total - system_share(total) - TENSORFLOW_PROCESS, "assumed")

    def _offered_by_microcontroller(self) -> Budget:
        # What the firmware itself needs of the block is not known, hence "assumed".
        largest = max((block.size for block in self.ram_blocks), default=self.memory)
        return self._budget(largest, "assumed")

    def _budget(
        self, size: Size, provenance: Literal["measured", "predicted", "assumed"]
    ) -> Budget:
        # A board too small for TensorFlow itself offers nothing, not less than nothing.
        return Budget(max(size, Size(0)), provenance, self.name, self.name)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON; what is not known is null."""
        capability = self.compute_capability
        return {
            "name": self.name,
            "title": self.title,
            "kind": self.kind,
            "memory": int(self.memory),
            "visible_memory": _plain(self.visible_memory),
            "free_memory": _plain(self.free_memory),
            "offered": self.offered.to_data(),
            "compute_capability": None if capability is None else "{}.{}".format(*capability),
            "registers_per_block": self.registers_per_block,
            "shared_memory_per_block": _plain(self.shared_memory_per_block),
            "flash": _plain(self.flash),
            "ram_blocks": [
                {"name": block.name, "bytes": int(block.size)} for block in self.ram_blocks
            ],
            "verified": self.verified,
            "source": self.source,
        }


def _plain(size: Size | None) -> int | None:
    return None if size is None else int(size)
