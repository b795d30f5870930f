"""The computer, its kernel or its container ran out of memory: SNG718 to SNG735."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG718",
        "The kernel killed the process: the machine was out of memory",
        "Memory and swap of the whole machine were used up, and Linux killed the process it"
        " thought would free most. `anon-rss` in its message is what the process really held;"
        " `total-vm` is not.",
        "Make the process smaller than the machine, or run it under a limit so that it is refused"
        " before it is killed. `snugly devices host` shows what there is.",
    ),
    Code(
        "SNG719",
        "The kernel killed the process: its container was out of memory",
        "The limit of a control group (a container, a pod, a service) was reached. The machine"
        " itself may have had plenty.",
        "Raise the container's limit (`docker run --memory`, `resources.limits.memory`), or make"
        " the process smaller. `snugly devices host` shows the limit that holds.",
    ),
    Code(
        "SNG720",
        "Slurm killed the job: it used more memory than it had asked for",
        "The job's control group reached the memory given by `--mem`. Slurm's MaxRSS is sampled"
        " and can miss the peak.",
        "Ask for more with `--mem` or `--mem-per-cpu`, or make the program smaller.",
    ),
    Code(
        "SNG721",
        "Kubernetes killed the container: out of memory",
        "The pod's memory limit was reached (OOMKilled), or the node was short of memory and"
        " evicted the pod. The flag is also set when a child of the main process was killed.",
        "Raise `resources.limits.memory`, and set `requests` to what the program needs, so that it"
        " is not evicted first.",
    ),
    Code(
        "SNG722",
        "systemd killed the process: memory was short",
        "systemd-oomd ends a whole control group when memory stays short for 30 seconds; or a unit"
        " reports that the kernel's OOM killer was at work in it.",
        "Run the job in a scope of its own (`systemd-run --scope`), and make it smaller than the"
        " memory there is.",
    ),
    Code(
        "SNG723",
        "earlyoom killed the process: memory was short",
        "earlyoom asks the largest process to stop at 10 % of free memory and kills it at 5 %.",
        "Make the process smaller; SIGTERM comes first, so a checkpoint can still be written.",
    ),
    Code(
        "SNG724",
        "The process was killed from outside, probably for lack of memory",
        "SIGKILL (exit code 137, -9 or 247, or the shell's 'Killed') leaves the process no words."
        " Most often it is the kernel's OOM killer; it can also be a person, a scheduler or a"
        " timeout, and nothing here proves which.",
        "Confirm it: `sudo dmesg | grep -i 'killed process'`, `memory.events` of the control group,"
        " `kubectl describe pod`, `sacct`. `snugly predict` and `snugly profile` say what the"
        " program needs.",
    ),
    Code(
        "SNG725",
        "NumPy was refused an array",
        "An array of this shape and type could not be allocated. NumPy raises before it touches"
        " memory, so the process can go on.",
        "Use a smaller type (float32 is half of float64), `np.memmap`, or read the data in pieces"
        " with `tf.data`.",
    ),
    Code(
        "SNG726",
        "Python was refused memory",
        "Python raised MemoryError: a limit (`ulimit`, a container), or a size that no machine"
        " has.",
        "Let go of what is not needed, work in pieces, or raise the limit; `snugly doctor` lists"
        " the limits that hold.",
    ),
    Code(
        "SNG727",
        "The system refused memory to the process",
        "A system call was answered with ENOMEM ('Cannot allocate memory'). Often it is `fork` in a"
        " large process, else a limit or a container.",
        "Start workers with `spawn` and before the data is loaded, use fewer of them, or raise the"
        " limit (`ulimit -a`, the container's).",
    ),
    Code(
        "SNG728",
        "Native code was refused memory and gave up",
        "C++ threw std::bad_alloc, nobody caught it, and the process aborted (exit code 134)"
        " without a Python traceback. It is the computer's memory or a limit on it, not the GPU's.",
        "As for any lack of memory on the computer: smaller batches and buffers, fewer workers, a"
        " higher limit.",
    ),
    Code(
        "SNG729",
        "The notebook service ran out of memory",
        "The virtual machine of the notebook (Colab, Kaggle) used all of its memory and was"
        " restarted. It is the computer's memory, not the GPU's.",
        "Do not hold the whole data set: read it with `tf.data`, use smaller types, delete what is"
        " not needed. A smaller batch alone often changes little.",
    ),
    Code(
        "SNG730",
        "Dask restarted a worker that used too much memory",
        "The worker went above its share of memory, and its nanny ended it. Tasks that do this"
        " repeatedly are given up (KilledWorker).",
        "Use smaller partitions or fewer threads a worker, or raise `memory_limit`.",
    ),
    Code(
        "SNG731",
        "Ray killed a worker because the node was short of memory",
        "Ray ends the newest task when the node passes 95 % of its memory.",
        "Run fewer tasks at once (`num_cpus`, `memory=` a task), or give the node more memory.",
    ),
    Code(
        "SNG732",
        "Windows could not commit memory: the paging file is too small",
        "Windows promises memory when it is asked for, and memory plus paging file were promised"
        " already. Often many processes load CUDA's libraries at once; free RAM does not help.",
        "Enlarge the paging file, or start fewer worker processes.",
    ),
    Code(
        "SNG733",
        "Shared memory (/dev/shm) ran out",
        "Processes share data through /dev/shm, which is memory with a size of its own: 64 MiB in"
        " a Docker container unless asked otherwise. Touching more ends in a bus error.",
        "`docker run --shm-size=2g` (or `--ipc=host`); in Kubernetes an emptyDir with"
        " `medium: Memory`; or fewer worker processes.",
    ),
    Code(
        "SNG734",
        "A profiler stopped the program before memory ran out",
        "Fil ended the process when nearly no memory was left (exit code 53), so that it could"
        " write its report.",
        "Open the report it wrote: fil-result/*/out-of-memory.svg.",
    ),
    Code(
        "SNG735",
        "PyTorch ran out of GPU memory",
        "The message is PyTorch's. Where TensorFlow runs in the same process or on the same card,"
        " it may have taken the card first: it reserves nearly all of it at start.",
        "`TF_FORCE_GPU_ALLOW_GROWTH=true` where both are used; else a smaller batch, and"
        " `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` for fragmentation.",
    ),
)
