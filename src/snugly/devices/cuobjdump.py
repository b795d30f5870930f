"""NVIDIA's cuobjdump: where it is, and running it over a library."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snugly.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INSTALL: Final = "pip install nvidia-cuda-cuobjdump, or install the CUDA toolkit"

_ELF: Final = b"\x7fELF"
_CUDA_MACHINE: Final = 190
"""EM_CUDA, elf.h."""
_LINE: Final = 8192
"""Longest line that is read whole; the names of C++ kernels reach some thousand characters."""


def find_cuobjdump() -> str:
    """The tool's path: on PATH, in the CUDA toolkit, or from NVIDIA's package for Python."""
    found = shutil.which("cuobjdump")
    if found is not None:
        return found
    for folder in _folders():
        candidate = folder / "cuobjdump"
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    raise MissingDependencyError(
        "cuobjdump is needed to list the kernels of a library, and is not installed",
        hint=INSTALL,
    )


def _folders() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin"
    yield Path("/usr/local/cuda/bin")
    for entry in sys.path:
        # nvidia/cu13/bin, nvidia/cuda_cuobjdump/bin: where NVIDIA's wheels put programs.
        yield from sorted((Path(entry) / "nvidia").glob("cu*/bin"))


def architecture_of_cubin(path: Path) -> tuple[int, int] | None:
    """The architecture of a bare cubin, which cuobjdump does not print; None for other files."""
    with path.open("rb") as file:
        header = file.read(64)
    if len(header) < 64 or header[:4] != _ELF or header[4] != 2:  # noqa: PLR2004 - ELF64
        return None
    machine = struct.unpack_from("<H", header, 18)[0]
    if machine != _CUDA_MACHINE:
        return None
    flags = struct.unpack_from("<I", header, 48)[0]
    # The low byte until CUDA 12, the second byte from version 8 of the format on (CUDA 13).
    number = flags >> 8 & 0xFF if header[8] >= 8 else flags & 0xFF  # noqa: PLR2004 - ABI 8
    return divmod(number, 10)


def _is_ptx(path: Path) -> bool:
    with path.open("rb") as file:
        beginning = file.read(4096)
    return b".version" in beginning and b".target" in beginning and b"\0" not in beginning


@contextmanager
def resource_usage(path: Path, program: str | None = None) -> Iterator[Iterator[str]]:
    """The lines of `cuobjdump --dump-resource-usage`, while it prints them.

    The program is ended when the block is left, whether it was read to its end or not.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}", hint="give a library, a fatbin or a cubin")
    if _is_ptx(path):
        raise InputError(
            f"{path.name} is PTX, which has no registers before it is compiled for a device",
            hint=f"ptxas -arch=sm_53 {path.name} -o {path.stem}.cubin, and give that",
        )
    command = [program or find_cuobjdump(), "--dump-resource-usage", str(path)]
    with subprocess.Popen(  # noqa: S603 - NVIDIA's tool, its arguments are not a shell's
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            yield _lines(process)
        finally:
            process.kill()


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    assert process.stdout is not None
    assert process.stderr is not None
    whole = True
    while line := process.stdout.readline(_LINE):
        if whole:
            yield line.decode("utf-8", "replace").rstrip("\r\n")
        whole = line.endswith(b"\n")
    complaint = process.stderr.read(_LINE).decode("utf-8", "replace").strip()
    if process.wait() != 0:
        raise _refusal(complaint)


def _refusal(complaint: str) -> InputError:
    if "does not contain device code" in complaint:
        return InputError(
            "the file has no device code",
            hint="TensorFlow's kernels are in libtensorflow_cc.so.2 of a build with CUDA; a CPU"
            " build has none",
        )
    words = complaint.splitlines()[0][:200] if complaint else "it said nothing"
    return InputError(f"cuobjdump cannot read the file: {words}", hint="give a library or a cubin")


def demangled(names: Sequence[str]) -> list[str]:
    """C++ names as they were written, where c++filt is installed; else as they are."""
    program = shutil.which("c++filt")
    if program is None or not names:
        return list(names)
    run = subprocess.run(  # noqa: S603 - binutils; the names go through its stdin
        [program], input="\n".join(names), capture_output=True, text=True, check=False, timeout=60
    )
    written = run.stdout.splitlines()
    return written if len(written) == len(names) else list(names)
