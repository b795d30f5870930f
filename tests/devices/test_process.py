"""What this process holds: seen to rise and fall with what the test itself does."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from snugly.devices import process

MIB = 1024**2


@pytest.fixture(scope="module")
def library():
    """NVML's answers for two cards, by a stand-in: most machines that run this have no GPU."""

    class NVMLError(Exception):
        pass

    def by_index(index):
        if index > 1:
            raise NVMLError
        return index

    def by_identity(identity):
        return {"GPU-b": 1}[identity]

    users = {
        0: [
            SimpleNamespace(pid=os.getpid(), usedGpuMemory=700 * MIB),
            SimpleNamespace(pid=1, usedGpuMemory=100 * MIB),
        ],
        1: [SimpleNamespace(pid=1, usedGpuMemory=None)],
    }
    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlDeviceGetHandleByIndex=by_index,
        nvmlDeviceGetHandleByUUID=by_identity,
        nvmlDeviceGetComputeRunningProcesses=users.__getitem__,
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=(800 + handle) * MIB),
    )


@pytest.fixture
def cards(library):
    cards = process._Cards()
    cards.library = library
    return cards


def run_fresh(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


def test_the_resident_set_rises_with_what_is_written_and_falls_when_it_is_freed():
    before = process.resident_bytes()
    block = bytearray(os.urandom(1)) * (64 * MIB)
    during = process.resident_bytes()
    del block
    assert during - before == pytest.approx(64 * MIB, abs=4 * MIB)
    assert process.resident_bytes() < during - 56 * MIB


def test_the_resident_set_is_what_psutil_says():
    # psutil takes a little memory itself while it answers.
    assert process.resident_bytes() == pytest.approx(psutil.Process().memory_info().rss, abs=MIB)
    assert process._resident_by_psutil() == pytest.approx(process.resident_bytes(), abs=MIB)


def test_the_peak_stays_until_it_is_reset():
    block = bytearray(64 * MIB)
    del block
    high = process.peak_resident_bytes()
    assert high >= process.resident_bytes() + 56 * MIB
    if process.reset_peak_resident():  # some sandboxes do not allow it
        assert process.peak_resident_bytes() < high - 56 * MIB


def test_the_peak_of_the_system_is_in_bytes():
    status, usage = run_fresh(
        "from snugly.devices import process as p; bytearray(512 << 20);"
        " print(p.peak_resident_bytes(), p._peak_by_system())"
    )
    # getrusage carries the peak over from the process that called exec, which is this one.
    carried_over = process._peak_by_system()
    assert int(status) * 0.9 < int(usage) < max(int(status), carried_over) * 1.1


def test_children_are_counted_apart():
    alone = process.children_resident_bytes()
    code = "block = bytearray(32 << 20); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert process.children_resident_bytes() - alone > 32 * MIB
        child.communicate(b"\n")


def test_asking_for_a_card_where_there_is_none_gives_none():
    if process._cards().library is not None:
        pytest.skip("needs a GPU-less machine")
    assert process.card_bytes() is None
    assert process.card_in_use() is None


def test_a_forked_process_asks_anew():
    here = process._cards()
    assert process._cards() is here  # kept between questions
    here.process = -1  # as it looks to a process that was forked off
    assert process._cards() is not here


def test_a_card_is_asked_for_this_process_alone(cards, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert cards.of_process(0) == 700 * MIB
    assert cards.in_use(0) == 800 * MIB
    assert cards.of_process(1) is None  # not listed: unknown, not nothing
    assert cards.of_process(2) is None  # no such card
    assert cards.in_use(2) is None


@pytest.mark.parametrize(
    ("visible", "index", "used"),
    [
        ("1,0", 0, 801),
        ("1,0", 1, 800),
        ("GPU-b", 0, 801),
        ("1", 1, None),
        ("-1", 0, None),
        ("", 0, None),
        ("5", 0, None),
    ],
)
def test_cards_are_counted_as_tensorflow_counts_them(cards, monkeypatch, visible, index, used):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert cards.in_use(index) == (used and used * MIB)


def test_a_driver_that_refuses_gives_none(cards, library, monkeypatch):
    def refuse(_):
        raise library.NVMLError

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    cards.library = SimpleNamespace(
        **vars(library)
        | {"nvmlDeviceGetMemoryInfo": refuse, "nvmlDeviceGetComputeRunningProcesses": refuse}
    )
    assert cards.of_process(0) is None
    assert cards.in_use(0) is None


@pytest.mark.gpu
@pytest.mark.tensorflow
def test_a_real_card_shows_what_tensorflow_takes():
    if process._cards().library is None:
        pytest.skip("needs a GPU")
    code = """
import os
os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
import tensorflow as tf
from snugly.devices import process
x = tf.ones((64, 1024, 1024))
first, whole = process.card_bytes(0), process.card_in_use(0)
y = tf.ones((1024, 1024, 1024)) + 1
print(first, process.card_bytes(0), whole, process.card_in_use(0))
"""
    first, second, whole, whole_after = run_fresh(code)
    assert int(whole_after) - int(whole) >= 4096 * MIB
    if first != "None":  # a driver inside a container may not say whose memory is whose
        assert int(second) - int(first) >= 4096 * MIB


def test_a_peak_outlives_a_reset_by_somebody_else():
    outer = process.ResidentPeak()
    block = bytearray(64 * MIB)
    del block
    inner = process.ResidentPeak()
    if not outer.exact:
        assert inner.exact is False
        return
    assert outer.read() >= inner.read() + 56 * MIB
    block = bytearray(96 * MIB)
    del block
    assert outer.read() == inner.read()  # the second rise is the higher one, and both saw it


def test_a_peak_that_cannot_be_reset_tells_what_is_certain(monkeypatch):
    # GIVEN a system that refuses, and a peak of long ago
    monkeypatch.setattr(process, "reset_peak_resident", lambda: False)
    figures = {"now": 100, "peak": 500}
    monkeypatch.setattr(process, "resident_bytes", lambda: figures["now"])
    monkeypatch.setattr(process, "peak_resident_bytes", lambda: figures["peak"])
    peak = process.ResidentPeak()
    # THEN below that peak only what was seen counts, above it everything
    assert (peak.exact, peak.read()) == (False, 100)
    figures["now"] = 300
    assert peak.read() == 300
    figures["now"] = 200
    assert peak.read() == 300
    figures["peak"] = 700
    assert peak.read() == 700


def test_a_process_that_waits_is_asleep_and_one_that_works_is_not():
    code = "print(flush=True); input()\nwhile True: pass"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.readline()
        eventually(lambda: process.is_asleep(child.pid) or sys.platform != "linux")
        child.stdin.write(b"\n")
        child.stdin.flush()
        eventually(lambda: not process.is_asleep(child.pid))
        child.kill()
    assert not process.is_asleep(child.pid)


def eventually(holds):
    """Waits for something that another process does."""
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)
