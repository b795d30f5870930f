"""From devices and sizes to budgets, and which of them share a prediction."""

import pytest

from snugly.devices import find_device
from snugly.errors import InputError, UnknownDeviceError
from snugly.sweeping.targets import Target, targets_of
from snugly.units import Size


def kinds(*devices, lite=False):
    return [target.kind(lite=lite) for target in targets_of(list(devices), None)]


def test_gpus_share_a_prediction_and_so_do_processors():
    assert kinds("t4", "a100-40gb", "jetson-nano") == ["gpu"] * 3
    assert kinds("raspberry-pi-4-4gb", "host") == ["cpu"] * 2


def test_of_a_tflite_file_only_microcontrollers_differ():
    assert kinds("t4", "raspberry-pi-4-4gb", lite=True) == ["lite", "lite"]
    assert kinds("esp32-s3", "rp2040", lite=True) == ["esp32-s3", "rp2040"]


def test_budgets_are_what_the_devices_offer():
    (target,) = targets_of("t4", None)
    assert target.budget == find_device("t4").offered
    assert targets_of(find_device("t4"), None) == [target]


def test_sizes_are_for_the_machine_that_predicts():
    targets = targets_of(None, ["1GiB", 2 << 30])
    assert [target.budget.bytes for target in targets] == [Size("1GiB"), Size("2GiB")]
    assert {target.kind(lite=False) for target in targets} == {"here"}
    assert targets_of(None, "1GiB") == targets[:1]
    assert targets_of(None, Size("1GiB")) == targets[:1]


def test_without_a_budget_there_is_one_target():
    assert targets_of(None, None) == [Target()]


def test_what_was_given_twice_counts_once():
    assert len(targets_of(["t4", " T4", find_device("t4")], None)) == 1
    assert len(targets_of(None, ["1GiB", "1024MiB"])) == 1


def test_an_unknown_device_comes_with_the_nearest_names():
    with pytest.raises(UnknownDeviceError) as caught:
        targets_of(["t4", "jetson-nono"], None)
    assert "did you mean jetson-nano" in caught.value.hint


def test_a_gpu_that_is_not_there_is_named():
    with pytest.raises(InputError, match="there is no gpu:99") as caught:
        targets_of(["gpu:99"], None)
    assert caught.value.code == "SNG203"


@pytest.mark.parametrize(
    ("devices", "memory", "code"),
    [
        (["t4"], "1GiB", "SNG202"),
        ([], None, "SNG002"),
        (None, [], "SNG002"),
        (None, 1.5, "SNG004"),
        (None, ["1GiB", "4 bananas"], "SNG004"),
        (5, None, "SNG201"),
    ],
)
def test_what_is_no_choice_is_refused(devices, memory, code):
    with pytest.raises(InputError) as caught:
        targets_of(devices, memory)
    assert caught.value.code == code
