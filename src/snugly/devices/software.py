"""The TensorFlow that is installed here, found without importing it.

Importing TensorFlow takes seconds and half a gigabyte; its version and kind of build stand in
files beside it.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

FLAVOURS: Final = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tensorflow-macos",
    "tensorflow-rocm",
    "tf-nightly",
    "tf-nightly-cpu",
    "intel-tensorflow",
    "nvidia-tensorflow",
)
"""Distributions that all install the same `tensorflow` folder."""

OLDEST_SEEN: Final = (2, 16)
NEWEST_SEEN: Final = (2, 21)
"""Versions that the tests have run with; others get a warning, not an error."""

MEMORY_VARIABLES: Final = (
    "TF_CPU_ALLOCATOR_USE_BFC",
    "TF_CPU_BFC_MEM_LIMIT_IN_MB",
    "TF_MKL_ALLOC_MAX_BYTES",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_GPU_ALLOCATOR",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_CUDNN_WORKSPACE_LIMIT_IN_MB",
    "TF_BFC_MEMORY_DUMP",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
    "CUDA_VISIBLE_DEVICES",
    "MALLOC_ARENA_MAX",
    "LD_PRELOAD",
)
"""Variables that change what TensorFlow allocates, or how it is counted."""

NEURAL_INSTRUCTIONS: Final = frozenset(
    ("avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16")
)
"""On x86 processors with one of these TensorFlow uses oneDNN unless it is told not to
(DefaultOneDnnPolicy, tensorflow/core/util/port.cc, 2.21); the names are those of Linux."""

WIDE_VECTORS: Final = "avx512f"
"""With these instructions oneDNN multiplies in blocks it has copied, and takes memory for them."""

BFLOAT16: Final = frozenset(("avx512_bf16", "amx_bf16"))
"""With one of these oneDNN multiplies bfloat16 as it is; without, it sums in float32 apart."""


@dataclass(frozen=True, slots=True)
class Software:
    """What runs the programs on this machine."""

    python: str
    machine: str
    flavours: tuple[tuple[str, str], ...]
    """Installed builds of TensorFlow, name and version."""
    keras: str | None
    cuda_build: bool | None
    """Whether the installed build can use NVIDIA GPUs; None where it does not say."""
    variables: tuple[tuple[str, str], ...]
    """Memory variables that are set."""
    instructions: frozenset[str] | None = None
    """The instruction sets of the processor, as Linux names them; None where nobody says."""

    @property
    def tensorflow(self) -> str | None:
        """The version of TensorFlow, or None where there is none."""
        return self.flavours[0][1] if self.flavours else None

    @property
    def tensorflow_version(self) -> tuple[int, int] | None:
        """Major and minor of that version; None where there is none, or it is not numbered so."""
        found = re.match(r"(\d+)\.(\d+)", self.tensorflow or "")
        return None if found is None else (int(found[1]), int(found[2]))

    @property
    def tensorflow_seen(self) -> bool:
        """Whether the tests have run with this version of TensorFlow."""
        version = self.tensorflow_version
        return version is not None and OLDEST_SEEN <= version <= NEWEST_SEEN

    @property
    def onednn(self) -> bool:
        """Whether oneDNN's kernels would be used; on where it is not known, the hazard being there.

        Without the variable, it depends on the processor.
        """
        value = dict(self.variables).get("TF_ENABLE_ONEDNN_OPTS")
        if value is not None:
            return value.strip().lower() not in {"0", "false", "f"}
        if self.machine not in {"x86_64", "AMD64"}:
            return False
        return self.instructions is None or not NEURAL_INSTRUCTIONS.isdisjoint(self.instructions)

    @property
    def wide_vectors(self) -> bool:
        """Whether there is AVX-512; assumed where nobody says, for it takes more memory."""
        return self.instructions is None or WIDE_VECTORS in self.instructions

    @property
    def multiplies_bfloat16(self) -> bool:
        """Whether the processor has products of bfloat16; assumed where nobody says."""
        return self.instructions is None or not BFLOAT16.isdisjoint(self.instructions)

    @property
    def cpu_allocator(self) -> str:
        """Which allocator TensorFlow would use for tensors on the CPU."""
        value = dict(self.variables).get("TF_CPU_ALLOCATOR_USE_BFC", "0")
        if value.strip().lower() in {"1", "true", "t"}:
            return "bfc (every allocation counted)"
        if self.onednn:
            return "mklcpu (malloc below 256 KiB, uncounted; BFC above)"
        return "malloc (uncounted)"


def detect_software(environment: Mapping[str, str]) -> Software:
    """Look at what is installed and which variables are set."""
    installed = [(name, version) for name in FLAVOURS if (version := _version(name)) is not None]
    return Software(
        python=platform.python_version(),
        machine=platform.machine(),
        flavours=tuple(installed),
        keras=_version("keras"),
        cuda_build=_is_cuda_build(installed[0][0]) if installed else None,
        variables=tuple(
            (name, environment[name]) for name in MEMORY_VARIABLES if name in environment
        ),
        instructions=read_instructions(),
    )


def read_instructions(path: Path = Path("/proc/cpuinfo")) -> frozenset[str] | None:
    """The instruction sets of the processor; None where the system does not say."""
    try:
        found = re.search(r"^flags\s*:(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else frozenset(found[1].split())


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _is_cuda_build(flavour: str) -> bool | None:
    # A generated file of literals: "build_info = OrderedDict([('is_cuda_build', False), …])".
    folder = metadata.distribution(flavour).locate_file("tensorflow")
    return read_cuda_build(Path(str(folder)) / "python/platform/build_info.py")


def read_cuda_build(path: Path) -> bool | None:
    """Whether a build_info.py says TensorFlow was built for CUDA; None if it does not say."""
    try:
        found = re.search(r"'is_cuda_build', (True|False)", path.read_text(encoding="utf-8"))
    except OSError:
        return None
    return None if found is None else found[1] == "True"
