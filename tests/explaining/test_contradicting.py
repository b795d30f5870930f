"""Clues that speak against memory, or against what a library guesses."""

import pytest

from snugly.explaining.explain import explain

HANDLE = (
    "E tensorflow/stream_executor/cuda/cuda_dnn.cc:352] Could not create cudnn handle:"
    " CUDNN_STATUS_NOT_INITIALIZED\n"
)
USAGE = (
    "E tensorflow/stream_executor/cuda/cuda_dnn.cc:356] Memory usage: {free} bytes free,"
    " 8361345024 bytes total.\n"
)
GUESS = (
    "E tensorflow/stream_executor/cuda/cuda_dnn.cc:360] Possibly insufficient driver version:"
    " 390.77.0\n"
)


def test_the_driver_is_suspected_where_tensorflow_does_so():
    finding = explain(HANDLE + GUESS)[0]
    assert (finding.code, finding.is_memory) == ("SNG756", False)
    assert explain(HANDLE)[0].code == "SNG711"


@pytest.mark.parametrize(
    ("free", "code", "is_memory"), [(22675456, "SNG711", True), (7361345024, "SNG756", False)]
)
def test_a_full_card_clears_the_driver(free, code, is_memory):
    # GIVEN what was free on the card WHEN TensorFlow guesses at the driver
    finding = explain(HANDLE + USAGE.format(free=free) + GUESS)[0]
    # THEN a full card is the cause, and an empty one is not
    assert (finding.code, finding.is_memory) == (code, is_memory)


def test_a_driver_that_is_named_for_certain_stays_on_a_full_card():
    certain = "CUDA driver version is insufficient for CUDA runtime version\n"
    assert explain(HANDLE + USAGE.format(free=22675456) + certain)[0].code == "SNG756"


@pytest.mark.parametrize(
    ("before", "is_memory"),
    [
        ("Epoch 1/20", True),
        ("Loading weights from /data/model-00002-of-00004.safetensors", False),
        ("x = np.load('features', mmap_mode='r')", False),
        ("reading /mnt/nfs/part-3", False),
        ("x = np.load('features.npy'); df -h /dev/shm: shm 64M 64M 0 100%", True),
    ],
)
def test_a_bus_error_beside_a_mapped_file_is_not_blamed_on_shared_memory(before, is_memory):
    finding = explain(f"{before}\nBus error (core dumped)\n")[0]
    assert finding.is_memory is is_memory
    assert ("A file that programs map" in finding.cause) is not is_memory
    assert explain(f"{before}\n", exit_code=135)[0].is_memory is is_memory
