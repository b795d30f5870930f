"""The kernel's log about one process."""

import os
import subprocess
import sys

import pytest

from snugly.errors import InputError
from snugly.explaining.kernel_log import (
    is_running,
    kernel_lines_about,
    lines_about,
    read_pid_file,
)

LOG = """\
[1.0] Killed process 4711 (python) total-vm:1kB
[2.0] Killed process 47110 (python) total-vm:1kB
[3.0] oom-kill:constraint=CONSTRAINT_NONE,task=python,pid=4711,uid=0
[4.0] NVRM: Xid (PCI:0000:01:00): 45, pid=4712, name=python3
"""


def test_lines_of_that_process_and_no_other():
    assert [line[:5] for line in lines_about(4711, LOG)] == ["[1.0]", "[3.0]"]
    assert lines_about(1, LOG) == ()


def test_a_pid_file_is_one_number(tmp_path):
    path = tmp_path / "train.pid"
    path.write_text(" 4711\n")
    assert read_pid_file(path) == 4711


@pytest.mark.parametrize("content", [b"", b"x", b"-1", b"0", b"4711 4712", b"\xff\x00"])
def test_anything_else_is_refused(tmp_path, content):
    path = tmp_path / "train.pid"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no process number"):
        read_pid_file(path)
    with pytest.raises(InputError, match="cannot read"):
        read_pid_file(tmp_path / "gone.pid")


def test_a_running_process_is_seen_and_a_dead_one_is_not():
    assert is_running(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert not is_running(child.pid)


def test_the_log_is_read_where_that_is_allowed_and_else_not_known():
    lines = kernel_lines_about(2**22 + 1)  # no process can have this number
    assert lines in (None, ())
