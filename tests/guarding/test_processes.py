"""Looking at real processes."""

import os
import signal
import subprocess
import sys

from snugly.guarding.limits import guarded_environment, set_data_limit
from snugly.guarding.processes import ProcessTree, catches, children_of, is_alive, name_of
from snugly.guarding.tail import LARGEST_TAIL, ErrorTail

MIB = 1 << 20


def start(program):
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    )
    child.stdout.readline()
    return child


def end(child):
    child.kill()
    child.communicate()


def test_what_a_child_and_its_child_hold_is_seen_once_where_they_share_it():
    # GIVEN a process that fills 100 MiB and forks: the pages are shared
    child = start(
        "import os, time\nx = bytearray(b'1') * (100 << 20)\n"
        "if os.fork():\n print(1, flush=True)\n input()\nelse:\n input()"
    )
    tree = ProcessTree()
    tree.refresh(always=True)
    # WHEN the sum of both would exceed a limit of 150 MiB THEN what they share is counted once
    assert len(tree.members) >= 2
    assert 100 * MIB < tree.look(150 * MIB).held < 150 * MIB
    for process in tree.members:
        os.kill(process, signal.SIGKILL)
    end(child)


def test_pages_of_a_mapped_file_are_not_held(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(bytes(64 * MIB))
    child = start(
        f"import mmap\nf = open({str(file)!r}, 'rb')\n"
        "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\nsum(m[::4096])\n"
        "print(1, flush=True)\ninput()"
    )
    tree = ProcessTree()
    tree.refresh(always=True)
    assert tree.look(50 * MIB).held < 40 * MIB
    end(child)


def test_a_dead_child_is_not_alive_and_has_no_children():
    child = start("print(1, flush=True)")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(child.pid)
    assert child.pid not in children_of(os.getpid())
    end(child)
    assert (name_of(child.pid), children_of(child.pid)) == ("", [])


def test_handlers_of_signals_are_seen():
    child = start(
        "import signal\nsignal.signal(signal.SIGTERM, lambda *_: 0)\nprint(1, flush=True)\ninput()"
    )
    assert catches(child.pid, signal.SIGTERM)
    assert not catches(child.pid, signal.SIGUSR1)
    end(child)
    assert not catches(child.pid, signal.SIGTERM)


def test_a_limit_set_from_outside_refuses_inside():
    child = start(
        "print(1, flush=True)\ninput()\ntry:\n bytearray(1 << 40)\n"
        "except MemoryError:\n print('refused', flush=True)"
    )
    assert set_data_limit(child.pid, 512 * MIB)
    output, _ = child.communicate(b"\n")
    assert output == b"refused\n"
    assert not set_data_limit(child.pid, 512 * MIB)


def test_what_the_user_has_set_stays():
    added = guarded_environment(3 * MIB, {"TF_MKL_ALLOC_MAX_BYTES": "7"})
    assert added == {
        "PYTHONFAULTHANDLER": "1",
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": "3",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }


def test_the_tail_is_bounded_and_everything_is_handed_on(tmp_path):
    read, written = os.pipe()
    with (tmp_path / "out").open("wb") as file:
        tail = ErrorTail(read, file.fileno())
        for number in range(200):
            os.write(written, b"%05d" % number * 1000)
        os.close(written)
        assert tail.finish(10)
    assert (tmp_path / "out").stat().st_size == tail.total == 1_000_000
    assert len(tail.text()) == LARGEST_TAIL
    assert tail.text().endswith(b"00199")


def test_a_listener_that_is_gone_does_not_stop_the_reading():
    read, written = os.pipe()
    listener, target = os.pipe()
    os.close(listener)
    tail = ErrorTail(read, target)
    os.write(written, b"a" * 1000)
    os.write(written, b"b")
    os.close(written)
    assert tail.finish(10)
    assert tail.text().endswith(b"ab")
    os.close(target)
