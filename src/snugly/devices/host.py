"""This machine: its memory, the limit its container sets, its GPUs, and whether it is a Jetson."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snugly.devices.budget import Budget
from snugly.devices.cgroup import CgroupLimit, read_cgroup_limit
from snugly.devices.nvidia import detect_gpus
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.devices.device import Device


@dataclass(frozen=True, slots=True)
class Host:
    """What was found on this machine, at the moment of asking."""

    total: Size
    available: Size
    cgroup: CgroupLimit | None
    gpus: tuple[Device, ...]
    board: str | None
    """The board's own name, e.g. "NVIDIA Jetson Nano Developer Kit"; None on ordinary machines."""

    @property
    def is_jetson(self) -> bool:
        """Whether CPU and GPU share this machine's memory."""
        return self.board is not None and "jetson" in self.board.lower()

    @property
    def offered(self) -> Budget:
        """What this process can still have of the host's memory: the machine or its container.

        On a Jetson this is also all that the GPU can have.
        """
        return _offered(self.available, self.cgroup)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        cgroup = None
        if self.cgroup is not None:
            cgroup = {
                "version": self.cgroup.version,
                "path": str(self.cgroup.path),
                "limit": int(self.cgroup.limit),
                "used": int(self.cgroup.used),
            }
        return {
            "total": int(self.total),
            "available": int(self.available),
            "offered": self.offered.to_data(),
            "cgroup": cgroup,
            "gpus": [gpu.to_data() for gpu in self.gpus],
            "board": self.board,
            "is_jetson": self.is_jetson,
        }


def detect_host(root: Path = Path("/")) -> Host:
    """Look at this machine.

    Args:
        root: Where `proc` and `sys` are mounted; tests give a folder of their own.
    """
    import psutil

    memory = psutil.virtual_memory()
    return Host(
        total=Size(memory.total),
        available=Size(memory.available),
        cgroup=read_cgroup_limit(root),
        gpus=tuple(detect_gpus()),
        board=_read_board(root),
    )


def host_memory(root: Path = Path("/")) -> Budget:
    """What this process can still have of the host's memory, and nothing else.

    Asking NVIDIA's library takes some milliseconds, more than some computations.
    """
    import psutil

    return _offered(Size(psutil.virtual_memory().available), read_cgroup_limit(root))


def _offered(available: Size, cgroup: CgroupLimit | None) -> Budget:
    if cgroup is not None and cgroup.available < available:
        description = f"this host's control group (version {cgroup.version})"
        return Budget(cgroup.available, "measured", description, "host")
    return Budget(available, "measured", "this host", "host")


def _read_board(root: Path) -> str | None:
    try:
        model = (root / "proc/device-tree/model").read_bytes()
    except OSError:
        return None
    # Device-tree strings end in a NUL byte.
    return model.rstrip(b"\0").decode(errors="replace").strip() or None
