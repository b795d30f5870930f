"""What a device offers, by kind."""

import json

import pytest

from snugly.devices import Device, RamBlock
from snugly.devices.reserve import TENSORFLOW_PROCESS, tensorflow_gpu_reserve
from snugly.units import Size

GIB = 1024**3
MIB = 1024**2


def make_device(**fields):
    known = {"name": "x", "title": "X", "source": "a datasheet", "memory": Size("16 GiB")}
    return Device(**(known | fields))


@pytest.mark.parametrize(
    ("free", "capability", "reserve"),
    [
        (2 * GIB - 1, (9, 0), 225),
        (2 * GIB, (5, 3), 500),
        (4 * GIB, (6, 1), 500),
        (16 * GIB, (7, 5), 1050),
        (24 * GIB, (8, 9), 1536),
        (80 * GIB, (9, 0), 1800),
        (180 * GIB, (12, 0), 1800),
    ],
)
def test_tensorflow_leaves_itself_what_its_source_says(free, capability, reserve):
    assert tensorflow_gpu_reserve(free, capability) == reserve * MIB


def test_a_measured_limit_is_offered_as_it_is():
    device = make_device(kind="gpu", tensorflow_memory=Size("13 GiB"), compute_capability=(7, 5))
    assert device.offered.bytes == Size("13 GiB")
    assert device.offered.provenance == "measured"


def test_a_visible_gpu_offers_its_free_memory_less_the_reserve():
    device = make_device(kind="gpu", free_memory=Size("10 GiB"), compute_capability=(8, 0))
    assert device.offered.bytes == 10 * GIB - 1536 * MIB
    assert device.offered.provenance == "predicted"


def test_a_gpu_nobody_measured_offers_less_than_it_has_and_says_assumed():
    device = make_device(kind="gpu", compute_capability=(7, 5))
    assert device.offered.bytes < 16 * GIB - 1050 * MIB
    assert device.offered.provenance == "assumed"


def test_a_shared_memory_board_gives_up_system_process_and_reserve():
    device = make_device(
        kind="shared-memory-gpu", visible_memory=Size("10 GiB"), compute_capability=(5, 3)
    )
    assert device.offered.bytes == 8 * GIB - TENSORFLOW_PROCESS - 500 * MIB
    assert device.offered.provenance == "assumed"


def test_a_computer_too_small_for_tensorflow_offers_nothing():
    device = make_device(kind="cpu", memory=Size("512 MiB"))
    assert device.offered.bytes == 0


def test_a_microcontroller_offers_its_largest_block():
    blocks = (RamBlock("a", Size("64 KiB")), RamBlock("b", Size("128 KiB")))
    device = make_device(kind="microcontroller", memory=Size("192 KiB"), ram_blocks=blocks)
    assert device.offered.bytes == Size("128 KiB")


def test_data_of_a_device_is_plain():
    device = make_device(kind="gpu", compute_capability=(7, 5), flash=None)
    data = device.to_data()
    assert json.loads(json.dumps(data)) == data
    assert data["memory"] == 16 * GIB
    assert data["compute_capability"] == "7.5"
    assert data["flash"] is None
