"""How a process ended, where nothing says why: SNG793 to SNG799."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG793",
        "The process crashed in native code",
        "A segmentation fault (exit code 139, -11; on Windows 0xC0000005) ends a process without a"
        " Python traceback. It is not a lack of memory by itself; but TensorFlow's convolutions on"
        " a CPU end so when their output finds no room (SNG901).",
        "`python -X faulthandler SCRIPT` shows the line. If memory was short, try"
        " `TF_ENABLE_ONEDNN_OPTS=0`, which raises an error instead.",
    ),
    Code(
        "SNG794",
        "The process gave up by itself",
        "It aborted (exit code 134, -6): a check failed in native code, which prints why before it"
        " ends. Nothing here says that memory is the reason.",
        "Look for the last lines on stderr, above all those that begin with F or say"
        " 'Check failed' or 'terminate called'.",
    ),
    Code(
        "SNG795",
        "The process touched memory behind which there is nothing",
        "A bus error (exit code 135, -7): /dev/shm was full, or a mapped file became shorter.",
        "In a container `--shm-size=2g`; else check the disk and the file that is mapped.",
    ),
    Code(
        "SNG796",
        "The process was asked to stop",
        "SIGTERM (exit code 143, -15) or an interrupt ended it: a scheduler, a restart, a person."
        " By itself that says nothing of memory.",
        "The log of whoever sent it says why: the scheduler, the container's events, systemd.",
    ),
    Code(
        "SNG797",
        "The notebook's kernel died, and nothing says why",
        "Jupyter notices that the process is gone and records neither exit code nor signal. A lack"
        " of memory, a crash in native code and a wrong installation look the same.",
        "Run the same cells as a script in a terminal and look at its exit code, or at the kernel's"
        " log: `sudo dmesg | tail`. `snugly explain --exit-code N` goes on from there.",
    ),
    Code(
        "SNG798",
        "The command could not be started",
        "Exit code 127 is 'command not found', 126 'not executable'; Jupyter says that a kernel"
        " died before it answered.",
        "Check the name, the path and the environment. For a kernel, run `python -m ipykernel` by"
        " hand.",
    ),
    Code(
        "SNG799",
        "The program ended with an error of its own",
        "The last error is an exception of Python or TensorFlow that does not speak of memory.",
        "The traceback above it names the line.",
    ),
)
