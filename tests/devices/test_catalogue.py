"""The catalogue: every figure has a source, every name can be found."""

import pytest

from snugly.devices import catalogue, find_device
from snugly.devices.catalogue import parse_catalogue
from snugly.errors import UnknownDeviceError
from snugly.units import Size

NAMES = list(catalogue())


def test_the_devices_people_ask_about_are_there():
    asked = {"jetson-nano", "raspberry-pi-4-4gb", "t4", "h200", "esp32-s3", "coral-dev-board-1gb"}
    assert asked <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_device_is_complete(name):
    device = find_device(name)
    assert device.name == name
    assert len(device.source) > 20
    assert device.memory > 0
    if "gpu" in device.kind:
        assert device.compute_capability is not None
        assert device.registers_per_block is not None
    if device.kind == "microcontroller":
        assert sum(block.size for block in device.ram_blocks) <= device.memory


@pytest.mark.parametrize("name", NAMES)
def test_no_device_offers_more_than_it_has(name):
    device = find_device(name)
    assert device.offered.bytes <= device.memory
    assert device.offered.bytes <= (device.visible_memory or device.memory)


def test_names_are_found_whatever_their_case():
    assert find_device(" Jetson-Nano ").name == "jetson-nano"


def test_an_unknown_name_is_answered_with_near_ones():
    with pytest.raises(UnknownDeviceError, match="jetson-nono") as caught:
        find_device("jetson-nono")
    assert "did you mean jetson-nano" in caught.value.hint
    assert "snugly devices" in caught.value.hint


def test_facts_that_were_read_are_kept():
    # GIVEN figures of datasheets and logs THEN the catalogue still has them
    nano = find_device("jetson-nano")
    assert (nano.visible_memory, nano.compute_capability) == (Size("3956 MiB"), (5, 3))
    assert nano.registers_per_block == 32_768
    assert find_device("stm32h743").offered.bytes == Size("512 KiB")
    assert find_device("stm32f407").offered.bytes == Size("128 KiB")
    assert find_device("h200").offered.bytes == Size("140829 MiB")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[x]\ntitle = "X"\nkind = "cpu"\nmemory = "1 GiB"\n', "needs a source"),
        ('[x]\ntitle = "X"\nkind = "toaster"\nmemory = "1 GiB"\nsource = "s"\n', "kind must be"),
    ],
)
def test_an_entry_without_source_or_kind_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_catalogue(text)
