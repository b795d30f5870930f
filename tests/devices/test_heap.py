"""What the C library keeps: seen by what comes back, and by pages that the system clears."""

import os
import subprocess
import sys

MIB = 1024**2
LINUX = sys.platform == "linux"


def run_fresh(code, **environment):
    """The words that a script prints in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    return done.stdout.split()


def test_what_the_c_library_kept_can_be_asked_back():
    code = """
from snugly.devices import heap, process
blocks = [bytes(1000) for _ in range(60_000)]
keep = blocks[-1]  # at the top of the heap, so that nothing below is given back by itself
del blocks
before = process.resident_bytes()
print(heap.give_back_unused(), before - process.resident_bytes())
"""
    can, gained = run_fresh(code)
    assert can == str(LINUX)
    assert int(gained) > 32 * MIB or can == "False"


def test_freed_blocks_serve_again_where_the_environment_forbids_it_and_only_until_it_is_over():
    # GIVEN a process that gives back all it frees, as Dask's workers do
    code = """
import resource
from snugly.devices import heap

def cleared():
    bytearray(1 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        bytearray(1 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(cleared())
print(heap.reuse_freed(), cleared())
print(heap.stop_reusing(), cleared())
"""
    # WHEN it allocates a block of 256 pages again and again
    without, could, during, back, after = run_fresh(code, MALLOC_TRIM_THRESHOLD_="65536")

    # THEN its pages are cleared each time, but not while freed blocks are reused
    assert (could, back) == (str(LINUX), str(LINUX))
    if LINUX:
        assert int(without) > 50 * 200
        assert int(during) < 256
        assert int(after) > 50 * 200
