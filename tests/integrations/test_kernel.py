"""A kernel of `snugly install-kernel`: a real one, which is guarded, dies, and says why."""

import json
import os
import subprocess
import sys
import time
from queue import Empty

import pytest

from snugly.guarding.story import Story
from snugly.integrations.kernel import as_text, read_note, write_note

MEMORY = "900MiB"


def install(*words):
    return subprocess.run(
        [sys.executable, "-m", "snugly", "install-kernel", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    done = install("--prefix", str(folder), "--memory", MEMORY)
    assert done.returncode == 0, done.stderr
    return folder / "share/jupyter"


@pytest.fixture
def kernel(place, monkeypatch):
    from jupyter_client.manager import start_new_kernel

    monkeypatch.setenv("JUPYTER_PATH", str(place))
    manager, client = start_new_kernel(kernel_name="snugly", startup_timeout=60)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(kernel, cell, seconds=60):
    """What a cell shows, by the kind of message."""
    manager, client = kernel
    asked = client.execute(cell)
    shown, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            message = client.get_iopub_msg(timeout=1)
        except Empty:
            if not manager.is_alive():
                break
            continue
        if message["parent_header"].get("msg_id") != asked:
            continue
        content = message["content"]
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            break
        text = content.get("text") or content.get("evalue") or str(content.get("data"))
        shown.append((message["msg_type"], text))
    return shown


def test_the_kernelspec_starts_this_python_under_the_supervisor(place):
    spec = json.loads((place / "kernels/snugly/kernel.json").read_text())
    assert spec["argv"][:3] == [sys.executable, "-m", "snugly.integrations.kernel"]
    assert spec["argv"][3:5] == ["--memory", str(900 << 20)]
    assert spec["interrupt_mode"] == "message"


def test_a_kernel_that_crashes_tells_the_cell_why_and_its_successor_tells_again(kernel):
    # GIVEN a kernel in which cells run, and are refused what is too much
    assert ("execute_result", "{'text/plain': '2'}") in run(kernel, "1 + 1")
    shown = run(kernel, "%%snugly_guard 300MiB\nbytearray(1 << 30)")
    assert any("guard's limit of 300 MiB" in text for _, text in shown)
    assert run(kernel, "bytearray(4 << 30)")[-1][0] == "error"
    # WHEN it crashes in native code
    shown = run(kernel, "import ctypes\nctypes.string_at(0)")
    # THEN the cell that ran has the story
    told = "".join(text for kind, text in shown if kind == "stream")
    assert "the kernel was ended by SIGSEGV" in told
    assert "hint:" in told
    # AND so has the first cell of the kernel that follows
    manager, client = kernel
    manager.restart_kernel()
    client.wait_for_ready(timeout=60)
    shown = run(kernel, "2 + 2")
    assert any("The kernel before this one died." in text for _, text in shown)
    assert ("execute_result", "{'text/plain': '4'}") in shown
    assert not any(kind == "stream" for kind, _ in run(kernel, "3"))


def test_a_kernel_that_is_told_to_end_leaves_no_story(kernel):
    manager, client = kernel
    assert run(kernel, "1")
    client.shutdown()
    until = time.monotonic() + 20
    while manager.is_alive() and time.monotonic() < until:
        time.sleep(0.1)
    assert not manager.is_alive()
    assert not os.path.exists(f"{manager.connection_file}.snugly")  # noqa: PTH110


@pytest.mark.parametrize(
    "words",
    [
        ("--memory", "4 bananas"),
        ("--memory", "0"),
        ("--name", "a/b"),
        ("--prefix", "/proc/nowhere"),
    ],
)
def test_what_cannot_be_installed_is_said(words):
    done = (
        install("--prefix", "/proc/nowhere", *words) if words[0] != "--prefix" else install(*words)
    )
    assert done.returncode == 2
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_story_is_told_of_the_kernel(tmp_path):
    story = Story(code="SNG602", happened="the command held much", line="a.py:1", hint="less")
    text = as_text(story)
    assert text.startswith("snugly[SNG602]: the kernel held much\n  line      a.py:1\n")
    note = tmp_path / "note"
    write_note(note, {"story": text})
    assert read_note(note) == {"story": text}
    note.write_text("[damaged")
    assert read_note(note) == {}
    assert read_note(tmp_path / "missing") == {}
