"""The doctor's examination: facts of this machine, and the hazards that follow from them.

`examine` gathers, `find_hazards` decides; the second is a pure function of the first, so every
hazard is tested without having the machine that shows it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snugly.codes import REGISTRY
from snugly.devices.host import Host, detect_host
from snugly.devices.kernels import board_has_few_registers, determinant_kernel_can_launch
from snugly.devices.limits import Limit, read_limits
from snugly.devices.software import NEWEST_SEEN, OLDEST_SEEN, Software, detect_software
from snugly.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Examination:
    """All that the doctor looked at, and what was found."""

    software: Software
    host: Host
    limits: tuple[Limit, ...]
    findings: tuple[Finding, ...]


def examine() -> Examination:
    """Look at this machine. TensorFlow is not imported and nothing is changed."""
    software = detect_software(os.environ)
    host = detect_host()
    limits = read_limits()
    return Examination(software, host, limits, tuple(find_hazards(software, host, limits)))


def find_hazards(software: Software, host: Host, limits: tuple[Limit, ...]) -> Iterator[Finding]:
    """What can go wrong here, most harmful first."""
    variables = dict(software.variables)
    if software.tensorflow is None:
        yield _finding("SNG902", "note", "no build of TensorFlow is installed")
    if len(software.flavours) > 1:
        names = ", ".join(f"{name} {version}" for name, version in software.flavours)
        yield _finding("SNG903", "error", names)
    if software.tensorflow is not None and software.onednn:
        setting = variables.get("TF_ENABLE_ONEDNN_OPTS", "unset, so on")
        yield _finding("SNG901", "warning", f"TF_ENABLE_ONEDNN_OPTS is {setting}")
    if host.cgroup is not None and host.cgroup.limit < host.total:
        evidence = f"{host.cgroup.limit} allowed of {host.total} ({host.cgroup.path})"
        yield _finding("SNG905", "warning", evidence)
    yield from _find_small_chips(host)
    address_space = next((limit for limit in limits if limit.name == "address space"), None)
    if address_space is not None and address_space.size is not None and host.gpus:
        yield _finding("SNG908", "warning", f"{address_space.command} is {address_space.size}")
    if software.tensorflow is not None and not software.tensorflow_seen:
        seen = "{}.{} to {}.{}".format(*OLDEST_SEEN, *NEWEST_SEEN)
        yield _finding("SNG904", "warning", f"TensorFlow {software.tensorflow}; seen: {seen}")
    if software.cpu_allocator.startswith("malloc"):
        setting = variables.get("TF_ENABLE_ONEDNN_OPTS", "unset, so off on this processor")
        evidence = f"TF_ENABLE_ONEDNN_OPTS is {setting}, TF_CPU_ALLOCATOR_USE_BFC is not set"
        yield _finding("SNG906", "note", evidence)
    if variables.get("TF_GPU_ALLOCATOR", "").strip() == "cuda_malloc_async":
        yield _finding("SNG907", "note", "TF_GPU_ALLOCATOR=cuda_malloc_async")
    if host.gpus and variables.get("TF_FORCE_GPU_ALLOW_GROWTH", "").lower() not in {"true", "1"}:
        yield _finding("SNG909", "note", f"{len(host.gpus)} GPU, memory growth not set")


def _find_small_chips(host: Host) -> Iterator[Finding]:
    small = [gpu.name for gpu in host.gpus if determinant_kernel_can_launch(gpu) is False]
    if host.board is not None and board_has_few_registers(host.board):
        small.append(host.board)
    if small:
        evidence = f"{', '.join(small)}: 32,768 registers a block, other chips give 65,536"
        yield _finding("SNG750", "warning", evidence, is_memory=False)


def _finding(code: str, severity: Severity, evidence: str, *, is_memory: bool = True) -> Finding:
    entry = REGISTRY[code]
    return Finding(
        code=code,
        title=entry.title,
        cause=entry.meaning,
        remedy=entry.remedy,
        severity=severity,
        is_memory=is_memory,
        evidence=(evidence,),
    )
