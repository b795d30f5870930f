"""What a machine offers: the catalogue of devices, and detection of this host."""

from snugly.devices.budget import Budget
from snugly.devices.catalogue import catalogue, find_device
from snugly.devices.choice import budget_for, is_gpu
from snugly.devices.device import Device, Kind, RamBlock
from snugly.devices.host import Host, detect_host, host_memory

__all__ = [
    "Budget",
    "Device",
    "Host",
    "Kind",
    "RamBlock",
    "budget_for",
    "catalogue",
    "detect_host",
    "find_device",
    "host_memory",
    "is_gpu",
]
