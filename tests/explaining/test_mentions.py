"""Lines that only speak of a lack of memory, and reports that have the same words."""

import pytest

from snugly.explaining.explain import explain
from snugly.explaining.mentions import only_mentions

ASKED = (
    "OOM when allocating tensor with shape[64,512,512,32] and type float on"
    " /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
)

MENTIONS = [
    # changes
    "Fix OOM when allocating tensor in the data loader (#311)",
    "a90c111 out of memory in the evaluation loop",
    "fix(trainer): avoid MemoryError on huge vocabularies",
    "* Handle RESOURCE_EXHAUSTED: OOM when allocating tensor by halving the batch",
    "Merge pull request #88 from ana/oom-retry: out of memory handling",
    # to be read or done some day
    "TODO: out of memory on the T4, see #12",
    "Tip: if the GPU is out of memory, lower batch_size",
    "What to do when the GPU runs out of memory",
    "https://stackoverflow.com/q/34199233/allocating-the-totality-of-a-gpu-memory-out-of-memory",
    "Simulating out of memory to test the fallback",
    "expected to go out of memory at batch 512 (predicted)",
    # commands and source
    "+ grep -c 'Out of memory: Killed process' /var/log/kern.log",
    "$ dmesg | grep -i 'killed process 12, out of memory'",
    "except tf.errors.ResourceExhaustedError:  # OOM when allocating tensor",
    'raise MemoryError("out of memory")',
    'with pytest.raises(MemoryError, match="out of memory"):',
    f'print("{ASKED}")',
    # features and what has such a name
    "systemd[1]: Listening on Userspace Out-Of-Memory (OOM) Killer Socket.",
    "Starting training with --oom-retries=3 (out-of-memory handling enabled)",
    "out-of-memory protection: on",
    "OOM guard installed at 14 GiB",
    "Allocated a pool of 2.1 GiB; out-of-memory callback installed",
    "Allocated 2.1 GiB; out-of-memory callback installed",
    "OOM callback registered: exits with code 137 on out of memory",
    "java -XX:+HeapDumpOnOutOfMemoryError -XX:+ExitOnOutOfMemoryError -jar serving.jar",
    "tests/test_oom.py::test_cuda_out_of_memory PASSED",
    "FAILED tests/test_oom.py::test_cuda_out_of_memory - AssertionError: 1 != 2",
    "--on-oom {fail,skip}  what to do when the GPU is out of memory (default: fail)",
    "wandb: Syncing run out-of-memory-bench-3",
    'docs: 3 results for "out of memory"',
    'Related issues: "CUDA out of memory when training"',
    "retry policy: {ResourceExhaustedError: 3, MemoryError: 0}",
    # what may happen, or does in general
    "Note that larger batches may cause out of memory errors on cards below 16 GB.",
    "WARNING: batch size 512 is likely to run out of memory on this device; continuing",
    'Set vm.overcommit_memory = 1 to avoid "Cannot allocate memory" failures on fork',
    "Reserved 4 GiB for out-of-memory situations.",
    "Skipping test_oom_recovery: not enough memory to run this test here",
    "  Regex: 'out of memory'",
    # what did not happen
    "no out of memory errors in 10000 steps",
    "finished without an out of memory error",
    "Training never ran out of memory",
    "0 OOM kills",
    "Failed: DID NOT RAISE <class 'MemoryError'>",
    # another memory
    "Not enough memory samples to train: 12 < 64",
]

REPORTS = [
    "WARNING: Out of memory: Killed process 4411 (python3) total-vm:90112345kB, anon-rss:60112kB",
    "could not avoid OOM: tried to allocate 2.00 GiB: out of memory",
    f"Retrying after RESOURCE_EXHAUSTED: {ASKED}",
    f"Handling OOM: RESOURCE_EXHAUSTED: {ASKED}",
    f"Handle this first: {ASKED}",
    f"If you see {ASKED}",
    "Handled OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "Fixing batch size failed: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    "Fix me: MemoryError: Unable to allocate 600. MiB for an array with shape (9,)",
    "no more memory: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    "Training stopped because the GPU ran out of memory trying to allocate 2.00GiB",
    "Failed when the GPU ran out of memory",
    "Stopped training: out of memory on device GPU:0",
    "The process would not start: out of memory",
    "before step 3 the device ran out of memory",
    "OOM guard fired: out of memory",
    "OOM killer killed process 12 (python)",
    "rank 0 OOM",
    "worker 0 OOM killed",
    'query result: "CUDA out of memory"',
    f'pattern "{ASKED}"',
    "retry policy gave up: MemoryError",
    "Some of your processes may have been killed by the cgroup out-of-memory handler.",
    f"1717171717 {ASKED}",
    "1717171717 out of memory",
    '9f1c2a7d3b4e   trainer:latest   "python train.py"   Exited (137) 3 minutes ago',
    "9f1c2a7d3b4e out of memory",
    "failed to avoid OOM",
    "cannot continue, out of memory",
    "The job failed because of out-of-memory errors",
    "Detected out-of-memory condition, exiting soon",
    "Skipping batch 12: out of memory",
    "terminate called after throwing an instance of 'std::bad_alloc'",
    "MemoryError",
    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 600. MiB for an array",
    "FAILED tests/test_conv.py::test_big - MemoryError: Unable to allocate 1.00 GiB",
    "python: /opt/train.py: out of memory",
    "Process 7 exited with exit code 137",
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup.",
]


@pytest.mark.parametrize("line", MENTIONS)
def test_a_mention_is_told_from_a_report(line):
    assert only_mentions(line)


@pytest.mark.parametrize("line", MENTIONS)
def test_memory_is_not_blamed_for_a_mention(line):
    assert not any(finding.is_memory for finding in explain(line.encode()))


@pytest.mark.parametrize("line", REPORTS)
def test_a_report_is_no_mention(line):
    assert not only_mentions(line)


@pytest.mark.parametrize(
    "line",
    [
        f"Handling OOM: RESOURCE_EXHAUSTED: {ASKED}",
        f"Retrying after RESOURCE_EXHAUSTED: {ASKED}",
        "Handled OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "Failed when the GPU ran out of memory",
        "Stopped training: out of memory on device GPU:0",
        "WARNING: Out of memory: Killed process 4411 (python3) total-vm:90112345kB",
    ],
)
def test_a_report_is_found_where_it_is_all_there_is(line):
    # GIVEN a log whose only evidence begins as a mention might THEN memory is blamed
    assert explain(f"epoch 1\n{line}\nbye\n".encode())[0].is_memory


def test_a_warning_that_names_what_it_avoids_is_heard():
    # GIVEN a warning of TensorFlow's that speaks of avoiding a lack THEN it is one all the same
    line = (
        "W bfc_allocator.cc:333] Garbage collection: deallocate free memory regions so that we can"
        " re-allocate a larger region to avoid OOM due to memory fragmentation."
    )
    assert explain(line.encode())[0].code == "SNG704"


def test_an_assertion_that_compares_texts_blames_nobody():
    line = 'AssertionError: "out of memory" does not match "bad value"'
    assert not any(finding.is_memory for finding in explain(line.encode()))
    assert explain(b"ImportError: cannot import name '_ArrayMemoryError' from 'numpy'")[0].code != (
        "SNG725"
    )


def test_only_what_a_traceback_says_counts_not_the_source_it_quotes():
    # GIVEN source that raises a lack of memory
    quoted = (
        'Traceback (most recent call last):\n  File "a.py", line 2, in f\n    raise MemoryError\n'
    )
    # THEN the error below it decides
    assert explain(f"{quoted}MemoryError\n")[0].code == "SNG726"
    assert not explain(f"{quoted}ValueError: 3 is not 4\n")[0].is_memory
