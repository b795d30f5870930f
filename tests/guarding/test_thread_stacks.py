"""Threads can be started where the limit leaves nothing for their stacks."""

from __future__ import annotations

import subprocess
import sys

from snugly.guarding.thread_stacks import STACKS, keep_stacks

CHILD = """
import _thread, resource, sys, threading
from snugly.guarding.thread_stacks import keep_stacks

if {keep}:
    keep_stacks()
    import time; time.sleep(0.2)
with open("/proc/self/status") as file:
    data = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (data + (1 << 20), -1))
started = 0
lock = threading.Event()
try:
    for _ in range(8):
        _thread.start_new_thread(lock.wait, ())
        started += 1
except RuntimeError:
    pass
resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))
lock.set()
print(started)
"""


def started(*, keep):
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(keep=keep)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return int(done.stdout)


def test_with_stacks_in_hand_threads_start_where_none_could():
    assert started(keep=False) == 0
    assert started(keep=True) >= STACKS - 1


def test_it_says_how_many_there_could_be():
    assert keep_stacks(2) == 2
