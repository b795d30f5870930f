"""Hazards of this machine, reported by `snugly doctor`: SNG9xx."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG901",
        "A oneDNN convolution segfaults when memory runs out",
        "With oneDNN on (the default on x86 processors with AVX-512 VNNI, AVX VNNI or AMX), a"
        " convolution whose output cannot be allocated ends the process with a segmentation fault"
        " (exit code 139) where TensorFlow should raise ResourceExhaustedError. Seen with"
        " TensorFlow 2.21 on CPU.",
        "Where memory is short, set `TF_ENABLE_ONEDNN_OPTS=0` before importing TensorFlow:"
        " convolutions then raise an error that can be caught.",
    ),
    Code(
        "SNG902",
        "TensorFlow is not installed",
        "Predicting Keras models and functions needs TensorFlow. Everything else works without.",
        "`pip install 'snugly[tensorflow]'`, or install the build that suits your machine.",
    ),
    Code(
        "SNG903",
        "More than one build of TensorFlow is installed",
        "Builds of TensorFlow install the same `tensorflow` folder and overwrite one another.",
        "Uninstall all of them, then install one.",
    ),
    Code(
        "SNG904",
        "This version of TensorFlow has not been seen",
        "Snugly is tested with TensorFlow 2.16 to 2.21. Other versions usually work; constants read"
        " from TensorFlow's sources may differ.",
        "Compare a prediction with a measured run before relying on it.",
    ),
    Code(
        "SNG905",
        "The container allows less memory than the machine has",
        "A control group caps this process. When the cap is reached the kernel kills the process"
        " (exit code 137) without an error from TensorFlow.",
        "Plan with the cap, not with the machine's memory: `--device host` does.",
    ),
    Code(
        "SNG906",
        "TensorFlow's own memory figures are switched off",
        "With oneDNN off (`TF_ENABLE_ONEDNN_OPTS=0`, or an older processor) and no BFC allocator,"
        ' `get_memory_info("CPU:0")` raises and the profiler records no allocations.',
        "To measure on a CPU, set `TF_CPU_ALLOCATOR_USE_BFC=1` before importing TensorFlow.",
    ),
    Code(
        "SNG907",
        "Allocations on the GPU cannot be recorded",
        "`TF_GPU_ALLOCATOR=cuda_malloc_async` emits no allocation events and does not follow the"
        " allocator that predictions replay.",
        "Unset `TF_GPU_ALLOCATOR` for recording and for predictions to apply.",
    ),
    Code(
        "SNG908",
        "A limit on address space breaks CUDA",
        "`ulimit -v` (RLIMIT_AS) is set. CUDA reserves address space at twice the card's memory, so"
        " GPU programs fail although memory is free.",
        "`ulimit -v unlimited`; limit data instead (`ulimit -d`).",
    ),
    Code(
        "SNG909",
        "TensorFlow takes the whole GPU",
        "Without memory growth TensorFlow reserves nearly all free memory of every visible GPU at"
        " start, so tools such as nvidia-smi show a full card whatever the program needs.",
        "Set `TF_FORCE_GPU_ALLOW_GROWTH=true` to see, and share, what is really used.",
    ),
)
