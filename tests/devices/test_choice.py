"""From memory= and device= to a budget."""

import pytest

from snugly.devices import budget_for, detect_host, find_device, is_gpu
from snugly.errors import InputError, InvalidSizeError, UnknownDeviceError
from snugly.units import Size


def test_nothing_said_means_no_budget():
    assert budget_for() is None


def test_a_stated_size_is_the_budget():
    budget = budget_for("4GiB")
    assert (budget.bytes, budget.provenance, budget.device) == (Size("4 GiB"), "assumed", None)
    assert budget.to_data()["bytes"] == 4 * 1024**3


def test_a_device_is_meant_by_name_or_by_itself():
    by_name = budget_for(device="T4")
    assert by_name == budget_for(device=find_device("t4"))
    assert by_name.description == "t4"


def test_host_means_this_machine():
    budget = budget_for(device="host")
    assert budget.device == "host"
    assert 0 < budget.bytes <= detect_host().total


def test_both_at_once_are_refused():
    with pytest.raises(InputError, match="both") as caught:
        budget_for("4GiB", "t4")
    assert caught.value.code == "SNG202"


def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="no gpu:99") as caught:
        budget_for(device="gpu:99")
    assert caught.value.code == "SNG203"


def test_bad_sizes_and_names_are_refused():
    with pytest.raises(InvalidSizeError):
        budget_for("4 bananas")
    with pytest.raises(UnknownDeviceError):
        budget_for(device="jetson-nono")


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (None, False),
        ("host", False),
        ("raspberry-pi-4-8gb", False),
        ("h200", True),
        ("Jetson-Nano", True),
        ("gpu:0", True),
        (find_device("t4"), True),
    ],
)
def test_a_device_says_whether_it_is_a_gpu(device, expected):
    assert is_gpu(device) is expected
