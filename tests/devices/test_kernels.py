"""What a kernel may use to be started: the arithmetic of NVIDIA's occupancy calculator."""

import pytest

from snugly.devices import Device, catalogue, find_device
from snugly.devices.kernels import (
    board_has_few_registers,
    can_launch,
    determinant_kernel_can_launch,
    launch_limit_in_words,
    most_registers,
    most_threads,
    registers_of,
    registers_taken,
)
from snugly.units import Size


def make_gpu(capability):
    """A GPU as NVML shows it: without its registers."""
    return Device(
        name="x",
        title="X",
        kind="gpu",
        memory=Size("1 GiB"),
        source="none",
        compute_capability=capability,
    )


NANO = find_device("jetson-nano")
T4 = find_device("t4")


@pytest.mark.parametrize(
    ("registers", "threads", "capability", "taken"),
    [
        (32, 1024, (5, 3), 32 * 1024),
        (33, 1024, (5, 3), 40 * 1024),  # 33 × 32 registers a warp, up to a multiple of 256
        (1, 32, (5, 3), 4 * 256),  # one warp, counted as four
        (1, 32, (6, 0), 2 * 256),  # one warp, counted as two
        (64, 160, (7, 5), 8 * 2048),  # five warps, counted as eight
        (0, 1024, (8, 0), 0),
    ],
)
def test_registers_are_counted_in_portions_and_warps_in_fours(
    registers, threads, capability, taken
):
    assert registers_taken(registers, threads, capability) == taken


def test_at_1024_threads_a_nano_allows_32_registers_and_other_chips_64():
    assert can_launch(NANO, 32, 1024)
    assert not can_launch(NANO, 33, 1024)
    assert can_launch(T4, 64, 1024)
    assert not can_launch(T4, 65, 1024)


def test_a_refusal_names_what_is_asked_for_and_what_there_is():
    launch = can_launch(NANO, 40, 1024)
    assert launch.refused == "registers"
    assert launch.reason == "40,960 registers a block, 32,768 allowed"
    assert can_launch(NANO, 8, 1056).reason == "1,056 threads a block, 1,024 allowed"
    shared = can_launch(NANO, 8, 64, 49153)
    assert shared.refused == "shared memory"
    assert "48 KiB allowed" in shared.reason
    assert can_launch(NANO, 8, 64, 49152).reason == ""


def test_limits_nobody_knows_refuse_nothing():
    unknown = make_gpu(None)
    assert can_launch(unknown, 255, 1024, 10**6)
    assert most_registers(unknown) is None
    assert launch_limit_in_words(unknown) is None
    assert determinant_kernel_can_launch(unknown) is None


@pytest.mark.parametrize("device", [NANO, T4], ids=lambda device: device.name)
@pytest.mark.parametrize("threads", [32, 96, 256, 1000, 1024])
def test_the_most_is_the_last_that_can_be_started(device, threads):
    most = most_registers(device, threads)
    assert can_launch(device, most, threads)
    assert most == 255 or not can_launch(device, most + 1, threads)


def test_the_largest_block_is_the_last_that_can_be_started():
    assert most_threads(NANO, 64) == 512
    assert most_threads(NANO, 33) == 768
    assert most_threads(NANO, 8) == 1024
    assert most_threads(NANO, 8, 10**6) == 0


def test_the_limit_in_words():
    assert "may use 32 registers, not 64" in launch_limit_in_words(NANO)
    assert launch_limit_in_words(T4).endswith("may use 64 registers")


def test_the_determinant_kernel_is_not_relied_on_where_a_block_has_half_the_registers():
    small = {name for name, d in catalogue().items() if determinant_kernel_can_launch(d) is False}
    assert small == {"jetson-nano", "jetson-nano-2gb", "jetson-tx2"}
    assert determinant_kernel_can_launch(T4) is True
    assert determinant_kernel_can_launch(find_device("raspberry-pi-4-4gb")) is None


@pytest.mark.parametrize(
    ("capability", "registers"),
    [((3, 5), None), ((5, 0), 65536), ((5, 3), 32768), ((6, 2), 32768), ((9, 0), 65536)],
)
def test_registers_follow_from_the_compute_capability(capability, registers):
    assert registers_of(make_gpu(capability)) == registers


def test_the_catalogue_agrees_with_the_compute_capability():
    for device in catalogue().values():
        if device.compute_capability is not None:
            known = registers_of(make_gpu(device.compute_capability))
            assert device.registers_per_block == known, device.name


@pytest.mark.parametrize(
    ("board", "few"),
    [
        ("NVIDIA Jetson Nano Developer Kit", True),
        ("NVIDIA Jetson Nano 2GB Developer Kit", True),
        ("NVIDIA Jetson TX2 Developer Kit", True),
        ("NVIDIA Jetson Orin Nano Developer Kit", False),
        ("NVIDIA Jetson Xavier NX Developer Kit", False),
        ("Raspberry Pi 4 Model B", False),
        ("FriendlyElec NanoPi Nano", False),
    ],
)
def test_boards_with_few_registers_are_known_by_name(board, few):
    assert board_has_few_registers(board) is few
