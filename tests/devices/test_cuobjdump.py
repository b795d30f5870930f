"""Running NVIDIA's cuobjdump where it is, and saying how to get it where it is not."""

import os
import stat
from pathlib import Path

import pytest

from snugly.devices import find_device
from snugly.devices.cuobjdump import (
    INSTALL,
    architecture_of_cubin,
    demangled,
    find_cuobjdump,
    resource_usage,
)
from snugly.devices.kernel_listing import read_listing, refused_kernels
from snugly.errors import InputError, MissingDependencyError

DATA = Path(__file__).parent / "data"


def make_program(folder, script):
    """A program that stands where cuobjdump would; it plays back what the real one printed."""
    program = folder / "cuobjdump"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_the_real_tool_reads_a_real_fatbin_where_it_is_installed():
    try:
        program = find_cuobjdump()
    except MissingDependencyError:  # the other tests play back what it printed
        return
    with resource_usage(DATA / "kernels.fatbin", program) as lines:
        listing = read_listing(lines, (5, 3))
    refused = refused_kernels(listing, find_device("jetson-nano"))
    assert [one.kernel.name for one in refused] == ["_Z6greedyIfEvPT_"]
    with (
        pytest.raises(InputError, match="no device code"),
        resource_usage(Path(__file__), program) as lines,
    ):
        list(lines)


def test_without_the_tool_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("snugly.devices.cuobjdump._folders", lambda: iter([tmp_path]))
    with pytest.raises(MissingDependencyError) as raised:
        find_cuobjdump()
    assert raised.value.hint == INSTALL


def test_the_tool_is_found_where_nvidias_wheel_puts_it(monkeypatch, tmp_path):
    home = tmp_path / "nvidia/cu13/bin"
    home.mkdir(parents=True)
    program = make_program(home, "exit 0")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    if not os.path.exists("/usr/local/cuda/bin/cuobjdump"):  # noqa: PTH110 - as the room looks
        assert find_cuobjdump() == program


def test_lines_come_as_they_are_printed_and_the_rest_is_not_waited_for(tmp_path):
    # GIVEN a program that prints one line and would then run for an hour
    program = make_program(tmp_path, "echo 'arch = sm_53'; exec sleep 3600")
    # WHEN only the first line is read THEN leaving ends the program
    with resource_usage(DATA / "kernels.fatbin", program) as lines:
        assert next(lines) == "arch = sm_53"


def test_a_line_without_end_is_cut(tmp_path):
    program = make_program(tmp_path, "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last")
    with resource_usage(DATA / "kernels.fatbin", program) as lines:
        first, last = list(lines)
    assert len(first) <= 8192
    assert last == "last"


def test_what_the_tool_complains_of_is_passed_on(tmp_path):
    program = make_program(tmp_path, "echo 'cuobjdump fatal : Invalid header' >&2; exit 1")
    with (
        pytest.raises(InputError, match="Invalid header"),
        resource_usage(DATA / "kernels.fatbin", program) as lines,
    ):
        list(lines)


def test_ptx_and_missing_files_are_refused_before_the_tool_runs(tmp_path):
    with (
        pytest.raises(InputError, match="is PTX") as raised,
        resource_usage(DATA / "kernels.ptx", "/nowhere"),
    ):
        pass
    assert raised.value.hint.startswith("ptxas -arch=")
    with (
        pytest.raises(InputError, match="there is no file"),
        resource_usage(tmp_path / "gone.so", "/nowhere"),
    ):
        pass


def test_a_bare_cubin_says_its_architecture(tmp_path):
    assert architecture_of_cubin(DATA / "kernels-sm_53.cubin") == (5, 3)
    assert architecture_of_cubin(DATA / "kernels.fatbin") is None
    assert architecture_of_cubin(DATA / "kernels.ptx") is None
    # GIVEN the header as CUDA 13 writes it: version 8, the architecture in the second byte
    header = bytearray((DATA / "kernels-sm_53.cubin").read_bytes()[:64])
    header[8], header[48:52] = 8, bytes([0x04, 80, 0, 6])
    newer = tmp_path / "newer.cubin"
    newer.write_bytes(header)
    assert architecture_of_cubin(newer) == (8, 0)


def test_names_are_demangled_where_that_is_possible(monkeypatch):
    names = ["_Z6greedyIfEvPT_", "plain"]
    assert demangled(names) in (["void greedy<float>(float*)", "plain"], names)
    monkeypatch.setenv("PATH", "")
    assert demangled(names) == names
    assert demangled([]) == []
