"""Running under a limit: SNG6xx."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG601",
        "The memory limit was exceeded",
        "A guarded computation asked for more memory than its limit allows and was refused.",
        "Raise the limit, or make the computation smaller; the process can go on.",
    ),
    Code(
        "SNG602",
        "The guard stopped the command",
        "All processes of the command together held more memory than their limit, and no single"
        " allocation could be refused: memory reserved earlier was filled (TensorFlow's allocator"
        " reserves ahead), or it is shared, or of several processes.",
        "Make the work smaller (batch size, prefetching, workers, what is kept in lists).",
    ),
    Code(
        "SNG603",
        "The command cannot be started",
        "There is no such command, or it is not executable, so nothing was run.",
        "Check the spelling and the path; `command -v NAME` shows what would be run.",
    ),
    Code(
        "SNG604",
        "The limit is more than what is there",
        "The limit that was asked for is above what the machine or its container has or has free,"
        " so the kernel may kill the command before the guard refuses it anything.",
        "State a limit below what `snugly devices` shows for this host, or leave --memory out.",
    ),
    Code(
        "SNG605",
        "The process holds more than the guard's limit already",
        "`snugly.guard` was entered with a limit that the process had exceeded before. The limit is"
        " for the whole process: TensorFlow itself takes some 300 MiB, and what earlier cells of a"
        " notebook keep counts as well.",
        "State a limit above what the message says is held, or free what is not needed.",
    ),
    Code(
        "SNG606",
        "The kernel for notebooks cannot be installed",
        "`snugly install-kernel` could not write its kernelspec, or the Python it should start has"
        " no ipykernel.",
        "Install ipykernel into that environment, or choose another place with --user or --prefix.",
    ),
)
