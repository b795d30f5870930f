"""Devices and hosts: data, and what a reader must find in the drawings."""

from pathlib import Path

from snugly.devices import Host, catalogue, find_device
from snugly.devices.cgroup import CgroupLimit
from snugly.reporting.devices import draw_device, draw_host, draw_list, list_data
from snugly.reporting.terminal import make_console
from snugly.units import Size


def drawn(drawing):
    console = make_console()
    with console.capture() as capture:
        console.print(drawing)
    return capture.get()


def test_the_list_has_every_device_in_data_and_drawing():
    devices = list(catalogue().values())
    data = list_data(devices)
    text = drawn(draw_list(devices))
    assert [entry["name"] for entry in data["devices"]] == list(catalogue())
    for device in devices:
        assert f"\n{device.name} " in f"\n{text}"


def test_a_device_shows_limits_of_a_block_and_its_source():
    text = drawn(draw_device(find_device("jetson-nano")))
    assert "32,768" in text
    assert "deviceQuery" in text
    assert "(assumed)" in text


def test_a_microcontroller_shows_its_blocks():
    text = drawn(draw_device(find_device("stm32h743")))
    assert "AXI SRAM" in text
    assert "flash" in text


def test_figures_nobody_has_read_are_shown_as_assumed():
    device = find_device("coral-dev-board-4gb")
    assert not device.verified
    assert "4 GiB (assumed)" in drawn(draw_device(device))


def test_a_host_shows_board_container_and_gpus():
    host = Host(
        total=Size("4 GiB"),
        available=Size("3 GiB"),
        cgroup=CgroupLimit(2, Path("/sys/fs/cgroup"), Size("2 GiB"), Size("1 GiB")),
        gpus=(find_device("t4"),),
        board="NVIDIA Jetson Nano Developer Kit",
    )
    text = drawn(draw_host(host))
    assert "CPU and GPU share its memory" in text
    assert "control group v2" in text
    assert "1 GiB (measured)" in text
    assert "NVIDIA T4" in text
