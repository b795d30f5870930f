"""The scratch file: bounded, checked before the work, and never left behind."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.linalg.matrices import OUT_OF_CORE, budget_for, random_matrix

from snugly.errors import InputError
from snugly.linalg import slogdet
from snugly.linalg.scratch import Scratch


@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_come_back_from_where_they_were_put(tmp_path, order):
    first, second = np.arange(12.0).reshape(3, 4), -np.ones((2, 2))
    with Scratch(4096, tmp_path) as scratch:
        scratch.write(np.asarray(first, order=order), 1000)
        scratch.write(second, 8)
        got = np.empty((3, 4), order=order)
        scratch.read(got, 1000)
    assert (got == first).all()


def test_no_name_of_it_is_ever_left_in_the_folder(tmp_path):
    with Scratch(1 << 20, tmp_path) as scratch:
        assert list(tmp_path.iterdir()) == []
        scratch.write(np.ones(10), 0)
    assert list(tmp_path.iterdir()) == []


def test_its_room_is_given_back_also_when_the_work_fails(tmp_path):
    before = {path.name for path in Path("/proc/self/fd").iterdir()}
    with pytest.raises(ZeroDivisionError), Scratch(4096, tmp_path):
        raise ZeroDivisionError
    assert {path.name for path in Path("/proc/self/fd").iterdir()} == before


def test_closing_twice_is_harmless(tmp_path):
    with Scratch(10, tmp_path) as scratch:
        scratch.close()


def test_what_was_not_written_reads_as_zero_and_behind_the_end_is_a_mistake(tmp_path):
    block = np.ones(4)
    with Scratch(32, tmp_path) as scratch:
        scratch.read(block, 0)
        assert (block == 0).all()
        with pytest.raises(EOFError):
            scratch.read(block, 8)


@pytest.mark.parametrize("kind", ["missing", "below a file", "kernel's"])
def test_a_folder_that_takes_no_files_is_named_with_the_size_and_the_reason(tmp_path, kind):
    (tmp_path / "file").write_text("")
    # A read-only folder binds everybody but root; the kernel's own folder binds root too.
    folder = {
        "missing": tmp_path / "nowhere",
        "below a file": tmp_path / "file" / "folder",
        "kernel's": Path("/proc"),
    }[kind]
    with pytest.raises(InputError) as caught, Scratch(3 << 20, folder):
        pass
    assert caught.value.code == "SNG505"
    assert f"3 MiB in {folder}: " in caught.value.message
    assert "scratch=FOLDER" in caught.value.hint


def test_slogdet_names_the_folder_it_was_given(tmp_path):
    with pytest.raises(InputError, match="nowhere") as caught:
        slogdet(random_matrix(300), memory=budget_for("panels", 300), scratch=tmp_path / "nowhere")
    assert caught.value.code == "SNG505"


def test_a_disk_with_too_little_room_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    full = SimpleNamespace(f_bavail=7, f_frsize=4096)
    monkeypatch.setattr(os, "fstatvfs", lambda _: full)
    with pytest.raises(InputError, match=os.strerror(errno.ENOSPC)) as caught:
        slogdet(random_matrix(300), memory=budget_for("panels", 300), scratch=tmp_path)
    assert caught.value.code == "SNG505"
    assert list(tmp_path.iterdir()) == []
    with Scratch(7 * 4096, tmp_path):
        pass


def test_more_than_any_disk_has_is_refused(tmp_path):
    with pytest.raises(InputError) as caught, Scratch(1 << 60, tmp_path):
        pass
    assert caught.value.code == "SNG505"


LIMITED = """
import resource, sys
import numpy as np
from snugly.errors import InputError
from snugly.linalg import slogdet
from snugly.linalg.scratch import Scratch
if {writing}:
    with Scratch(1 << 20, {folder!r}) as scratch:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
        try:
            scratch.write(np.ones(1 << 14), 0)
        except InputError as error:
            print(error.code, error.message)
else:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
    try:
        slogdet(np.random.default_rng(0).standard_normal((300, 300)), memory={memory},
                scratch={folder!r})
    except InputError as error:
        print(error.code, error.message)
"""


@pytest.mark.parametrize("writing", [False, True])
def test_a_file_that_may_not_grow_is_refused_with_the_systems_reason(tmp_path, writing):
    """The one limit on files that an unprivileged process can really run into."""
    code = LIMITED.format(folder=str(tmp_path), writing=writing, memory=budget_for("panels", 300))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("SNG505 the scratch file needs")
    assert os.strerror(errno.EFBIG) in done.stdout
    assert list(tmp_path.iterdir()) == []


INTERRUPTED = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
sys.path.insert(0, {root!r})
from snugly.linalg.files import open_source
from tests.linalg.matrices import factored

def progress(share):
    if share > 0.2:
        print("half way", flush=True)
        os.kill(os.getpid(), signal.{signal})

try:
    factored({method!r}, open_source(sys.argv[1]), width=50, progress=progress, folder=sys.argv[2])
except KeyboardInterrupt:
    links = ["/proc/self/fd/" + number for number in os.listdir("/proc/self/fd")]
    files = [os.readlink(link) for link in links if os.path.lexists(link)]
    names = [thread.name for thread in threading.enumerate()]
    print("interrupted", names, any("scratch" in file for file in files))
"""


@pytest.mark.parametrize("method", OUT_OF_CORE)
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_interrupted_half_way_the_scratch_is_gone_and_the_input_untouched(tmp_path, method, name):
    # GIVEN a matrix in a file, and a way of working that sends its factors to a scratch file
    path, folder = tmp_path / "a.npy", tmp_path / "scratch"
    folder.mkdir()
    np.save(path, random_matrix(300))
    before = path.read_bytes(), path.stat().st_mtime_ns

    # WHEN the process is interrupted, or killed, while it factors
    code = INTERRUPTED.format(root=str(Path(__file__).parents[2]), method=method, signal=name)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    # THEN it reached the caller, no thread and no file is left, and the input is as it was
    assert "half way" in done.stdout, done.stderr[-2000:]
    if name == "SIGINT":
        assert done.stdout.splitlines()[-1] == "interrupted ['MainThread'] False"
    else:
        assert done.returncode == -signal.SIGKILL
    assert list(folder.iterdir()) == []
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
