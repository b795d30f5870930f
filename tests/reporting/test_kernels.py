"""Kernels that cannot be started: data and drawing."""

import json

from snugly.devices import find_device
from snugly.devices.kernel_listing import Kernel, Listing, refused_kernels
from snugly.reporting.kernels import KernelReport, counting, draw_kernels, kernels_data
from snugly.reporting.terminal import make_console


def make_report(registers=64, shown=1, **listing):
    device = find_device("jetson-nano")
    kernels = {name: Kernel(name, registers, 0, (5, 3)) for name in ("a", "b\x1b[31m", "c")}
    known = {"kernels": kernels, "compiled_for": {(5, 3)}}
    content = Listing(**(known | listing))
    refused = refused_kernels(content, device)
    names = [one.kernel.name for one in refused[:shown]]
    return KernelReport("lib.so", device, (5, 3), 1024, content, refused, names)


def drawn(report):
    console = make_console()
    with console.capture() as capture:
        console.print(draw_kernels(report))
    return capture.get()


def test_data_is_plain_and_counts_what_is_not_shown():
    data = kernels_data(make_report())
    assert json.loads(json.dumps(data)) == data
    assert data["kernels"]["refused_count"] == 3
    assert [kernel["name"] for kernel in data["kernels"]["refused"]] == ["a"]


def test_the_drawing_names_kernels_and_says_how_many_more_there_are():
    text = drawn(make_report())
    assert text.startswith("3 of 3 kernels cannot be started on jetson-nano")
    assert "… and 2 more; --limit 3" in text


def test_names_of_strangers_do_not_reach_the_terminal_as_they_are():
    assert "\x1b[31m" not in drawn(make_report(shown=3))


def test_all_can_be_started():
    report = make_report(registers=8)
    assert not report.found
    assert drawn(report).startswith("all 3 kernels can be started")


def test_ptx_is_not_known_and_nothing_is_said_to_be_nothing():
    ptx = make_report(kernels={}, portable_to={(5, 0)})
    assert (ptx.loaded, ptx.found) == ("ptx", False)
    nothing = make_report(kernels={}, portable_to={(9, 0)})
    assert (nothing.loaded, nothing.found) == ("nothing", True)
    assert drawn(nothing).startswith("nothing of this library runs")


def test_without_a_terminal_nothing_is_counted_aloud():
    with counting() as advance:
        assert advance is None
