"""Reading what cuobjdump printed of a real fatbin, and judging its kernels."""

from pathlib import Path

import pytest

from snugly.devices import find_device
from snugly.devices.kernel_listing import (
    Kernel,
    Listing,
    loads,
    parse_architecture,
    read_listing,
    refused_kernels,
)
from snugly.errors import InputError

PRINTED = (Path(__file__).parent / "data/kernels-resource-usage.txt").read_text().splitlines()
NANO = find_device("jetson-nano")


def section(architecture, *kernels):
    yield from ["Fatbin elf code:", "================", f"arch = sm_{architecture}"]
    for name, registers, shared in kernels:
        yield f" Function {name}:"
        yield f"  REG:{registers} STACK:0 SHARED:{shared} LOCAL:0 CONSTANT[0]:328"


def test_of_a_real_fatbin_the_code_for_the_device_is_read():
    listing = read_listing(PRINTED, (5, 3))
    assert listing.kernels == {
        "_Z6sharedPf": Kernel("_Z6sharedPf", 5, 49152, (5, 3)),
        "_Z6greedyIfEvPT_": Kernel("_Z6greedyIfEvPT_", 64, 0, (5, 3)),
        "_Z4easyPf": Kernel("_Z4easyPf", 4, 0, (5, 3)),
    }
    assert listing.compiled_for == {(5, 3), (6, 0)}
    assert listing.portable_to == {(5, 3)}


def test_only_the_greedy_kernel_is_refused_on_a_nano():
    refused = refused_kernels(read_listing(PRINTED, (5, 3)), NANO)
    assert [(one.kernel.name, one.most_threads) for one in refused] == [("_Z6greedyIfEvPT_", 512)]
    assert refused_kernels(read_listing(PRINTED, (5, 3)), NANO, threads=512) == []


def test_code_of_another_generation_is_not_loaded():
    listing = read_listing(PRINTED, (7, 5))
    assert not listing.kernels
    assert listing.compiled_for == {(5, 3), (6, 0)}


@pytest.mark.parametrize(
    ("device", "code", "runs"),
    [
        ((5, 3), (5, 3), True),
        ((5, 3), (5, 0), True),
        ((5, 0), (5, 3), False),
        ((6, 2), (5, 3), False),
        ((5, 3), (6, 0), False),
    ],
)
def test_machine_code_runs_on_its_own_generation_upwards(device, code, runs):
    assert loads(device, code) is runs


def test_the_nearest_code_counts_not_the_first():
    lines = [*section(50, ("k", 30, 0)), *section(53, ("k", 50, 0)), *section(52, ("k", 99, 0))]
    assert read_listing(lines, (5, 3)).kernels["k"].registers == 50


def test_of_two_kernels_of_one_name_the_larger_counts():
    lines = [*section(53, ("k", 50, 0)), *section(53, ("k", 20, 0))]
    assert read_listing(lines, (5, 3)).kernels["k"].registers == 50


def test_the_worst_kernel_comes_first():
    kernels = [("a", 40, 0), ("b", 200, 0), ("c", 10, 10**6), ("d", 64, 0)]
    refused = refused_kernels(read_listing(section(53, *kernels), (5, 3)), NANO)
    assert [one.kernel.name for one in refused] == ["c", "b", "d", "a"]


def test_a_bare_cubin_has_the_architecture_it_is_given():
    bare = [
        "Resource usage:",
        " Common:",
        "  GLOBAL:0",
        " Function k:",
        "  REG:40 STACK:0 SHARED:0",
    ]
    assert read_listing(bare, (5, 3), single=(5, 3)).kernels["k"].registers == 40
    assert not read_listing(bare, (5, 3)).kernels


def test_the_systems_share_of_shared_memory_is_not_the_kernels():
    lines = section(90, ("k", 8, 50176))
    assert read_listing(lines, (9, 0)).kernels["k"].shared_memory == 49152


def test_progress_is_told_now_and_then():
    told = []
    kernels = [(f"k{i}", 8, 0) for i in range(1200)]
    read_listing(section(53, *kernels), (5, 3), on_progress=told.append)
    assert told == [500, 1000]


def test_noise_is_passed_over():
    noise = ["\x00\xff", "REG:1", " Function :", "arch = sm_", "Fatbin elf code", "=" * 100000]
    assert read_listing(noise, (5, 3)) == Listing()


@pytest.mark.parametrize("text", ["sm_60", "6.0", "60", "compute_60", "SM_60"])
def test_architectures_are_read_as_people_write_them(text):
    assert parse_architecture(text) == (6, 0)
    assert parse_architecture("sm_100") == (10, 0)


@pytest.mark.parametrize("text", ["", "sm_", "pascal", "6", "sm_60x9"])
def test_what_is_no_architecture_is_refused(text):
    with pytest.raises(InputError, match="no GPU architecture"):
        parse_architecture(text)
