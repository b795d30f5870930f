"""A log that is larger than the memory there is: streamed, and its cause found."""

from __future__ import annotations

import resource
import subprocess
import sys

LINE = b"2024-01-01 00:00:00 INFO trainer: step 12312 loss 0.2312 images/s 1213.2 and so on\n"
CAUSE = b"Allocator (GPU_0_bfc) ran out of memory trying to allocate 784.00MiB requested by op x\n"
MIB = 1 << 20
MAY_HAVE, SIZE = 96 * MIB, 160 * MIB


def bounded():
    resource.setrlimit(resource.RLIMIT_DATA, (MAY_HAVE, MAY_HAVE))


def test_a_log_larger_than_the_memory_allowed_is_explained():
    # GIVEN a process that may have less than what will come
    process = subprocess.Popen(
        [sys.executable, "-m", "snugly", "explain", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=bounded,  # noqa: PLW1509 - no thread runs
    )
    assert process.stdin is not None

    # WHEN a log goes through it, with its cause in the middle
    block = LINE * (MIB // len(LINE))
    for number in range(SIZE // MIB):
        process.stdin.write(block)
        if number == SIZE // MIB // 2:
            process.stdin.write(CAUSE)
    output, errors = process.communicate(timeout=120)

    # THEN the cause is found
    assert b"SNG701" in output, errors


def test_a_line_without_end_is_no_more_than_a_long_log():
    done = subprocess.run(
        [sys.executable, "-m", "snugly", "explain", "-"],
        input=bytes(SIZE // 4) + b"\nMemoryError\n",
        capture_output=True,
        preexec_fn=bounded,
        timeout=120,
        check=False,
    )
    assert b"SNG726" in done.stdout, done.stderr
