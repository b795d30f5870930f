"""Something other than memory ran out: SNG736 and up."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG736",
        "Too many files are open",
        "The limit on open files was reached. TensorFlow reports it under the same name as a lack"
        " of memory (RESOURCE_EXHAUSTED), but memory has nothing to do with it.",
        "`ulimit -n 65536`, fewer files read at once (`interleave(cycle_length=…)`), and writers"
        " that are closed.",
    ),
    Code(
        "SNG737",
        "No more threads could be started",
        "A limit on the number of threads or processes was reached (`ulimit -u`, the container's"
        " pids limit), or a limit on address space leaves no room for their stacks.",
        "Raise the limit (`docker run --pids-limit`, `ulimit -u`), or use fewer threads:"
        " `tf.config.threading.set_inter_op_parallelism_threads`, `OMP_NUM_THREADS`. Do not set"
        " `ulimit -v`.",
    ),
    Code(
        "SNG738",
        "A graph or constant is larger than 2 GB",
        "A graph is stored as a protocol buffer, which cannot exceed 2 GB. Large arrays have become"
        " constants of the graph: captured by a tf.function, or given to `from_tensor_slices`.",
        "Pass the array as an argument, keep it in a tf.Variable, or stream it with `tf.data`."
        " More memory does not help.",
    ),
    Code(
        "SNG739",
        "A shape is so large that its size overflows",
        "The product of the dimensions is beyond what 64 bits can count: the shape is wrong, and no"
        " machine could hold it.",
        "Look for a dimension that is a size, an id or a negative number by mistake.",
    ),
    Code(
        "SNG740",
        "The disk is full",
        "A file could not be written because its disk, or the quota on it, is full. Disk, not"
        " memory.",
        "`df -h` shows the disk; keep fewer checkpoints, or write somewhere else. In a container,"
        " look at the volume.",
    ),
    Code(
        "SNG741",
        "A message between processes is too large",
        "gRPC refuses messages above a limit (4 MiB unless set otherwise). The status it uses,"
        " RESOURCE_EXHAUSTED, looks like memory and is not.",
        "Raise `grpc.max_receive_message_length` on both sides, or send less at a time.",
    ),
    Code(
        "SNG742",
        "A quota was used up",
        "A service refused a request because a quota or rate limit was reached. RESOURCE_EXHAUSTED"
        " is the name of that status; the memory of this machine has nothing to do with it.",
        "Wait and try again more slowly, or ask for a higher quota.",
    ),
    Code(
        "SNG743",
        "A time limit was reached",
        "A scheduler, a CI service or a watchdog ended the program because its time was over.",
        "Ask for more time, or save checkpoints and go on from them.",
    ),
    Code(
        "SNG744",
        "A program calls itself without end",
        "A function calls itself without end, or a structure is nested more deeply than Python"
        " allows (RecursionError). It is a limit on depth, not memory.",
        "Look at the lines that repeat in the traceback.",
    ),
    Code(
        "SNG745",
        "A dataset is cached only in part",
        "The iterator did not read the dataset to its end, so its cache is thrown away and made"
        " again each time. It costs time; nothing failed.",
        "Write `dataset.cache().take(k)` in place of `dataset.take(k).cache()`.",
    ),
)
