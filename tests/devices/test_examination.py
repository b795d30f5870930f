"""The doctor: facts of software and limits, and the hazards that follow from them."""

from dataclasses import replace
from pathlib import Path

import pytest

from snugly.devices import Device, Host
from snugly.devices.cgroup import CgroupLimit
from snugly.devices.examination import examine, find_hazards
from snugly.devices.limits import Limit, read_limits
from snugly.devices.software import (
    Software,
    detect_software,
    read_cuda_build,
    read_instructions,
)
from snugly.units import Size

GPU = Device(
    name="gpu:0",
    title="X",
    kind="gpu",
    memory=Size("16 GiB"),
    source="a test",
    compute_capability=(7, 5),
)


def make_software(**fields):
    known = {
        "python": "3.12.1",
        "machine": "x86_64",
        "flavours": (("tensorflow", "2.21.0"),),
        "keras": "3.15.0",
        "cuda_build": False,
        "variables": (),
    }
    return Software(**(known | fields))


def make_host(**fields):
    known = {
        "total": Size("16 GiB"),
        "available": Size("12 GiB"),
        "cgroup": None,
        "gpus": (),
        "board": None,
    }
    return Host(**(known | fields))


def codes(software=None, host=None, limits=()):
    hazards = find_hazards(software or make_software(), host or make_host(), limits)
    return {finding.code for finding in hazards}


ONEDNN_OFF = ("TF_ENABLE_ONEDNN_OPTS", "0")
BFC_ON = ("TF_CPU_ALLOCATOR_USE_BFC", "1")
QUIET = make_software(variables=(ONEDNN_OFF, BFC_ON))
"""Software in which nothing is found, so that each test below shows one hazard alone."""


def test_nothing_is_found_where_nothing_is_wrong():
    assert codes(QUIET) == set()


def test_onednn_on_is_a_hazard_of_every_convolution():
    assert codes(make_software()) == {"SNG901"}


def test_no_tensorflow_is_noted():
    assert codes(make_software(flavours=(), cuda_build=None)) == {"SNG902"}


def test_two_builds_overwrite_each_other():
    flavours = (("tensorflow", "2.21.0"), ("tensorflow-cpu", "2.20.0"))
    assert "SNG903" in codes(make_software(flavours=flavours))


@pytest.mark.parametrize(
    ("version", "seen"), [("2.16.2", True), ("2.21.0", True), ("2.15.1", False), ("3.0.0", False)]
)
def test_a_version_never_seen_is_warned_about(version, seen):
    software = make_software(flavours=(("tensorflow", version),))
    assert software.tensorflow_seen is seen
    assert ("SNG904" in codes(software)) is not seen


def test_a_version_that_cannot_be_read_has_not_been_seen():
    software = make_software(flavours=(("tensorflow", "unknown"),))
    assert software.tensorflow_version is None
    assert not software.tensorflow_seen


def test_a_version_is_read_as_numbers():
    assert make_software(flavours=(("tensorflow-cpu", "2.9.1"),)).tensorflow_version == (2, 9)


def test_a_container_smaller_than_the_machine_is_a_hazard():
    cgroup = CgroupLimit(2, Path("/sys/fs/cgroup"), Size("2 GiB"), Size(0))
    assert codes(QUIET, make_host(cgroup=cgroup)) == {"SNG905"}


def test_uncounted_allocations_are_noted():
    assert codes(make_software(variables=(ONEDNN_OFF,))) == {"SNG906"}


def test_on_an_older_processor_onednn_is_off_by_itself():
    older = frozenset(("avx2", "avx512f"))
    assert codes(make_software(instructions=older)) == {"SNG906"}
    assert codes(make_software(instructions=frozenset(("avx_vnni",)))) == {"SNG901"}
    told = make_software(instructions=older, variables=(("TF_ENABLE_ONEDNN_OPTS", "1"),))
    assert codes(told) == {"SNG901"}


def test_wide_vectors_and_bfloat16_are_assumed_where_nobody_says():
    assert make_software().wide_vectors
    assert make_software().multiplies_bfloat16
    assert not make_software(instructions=frozenset(("avx512_vnni",))).multiplies_bfloat16
    assert make_software(instructions=frozenset(("amx_bf16",))).multiplies_bfloat16
    assert make_software(instructions=frozenset(("avx2", "avx512f"))).wide_vectors
    assert not make_software(instructions=frozenset(("avx2", "avx_vnni"))).wide_vectors


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 avx512f\n", {"fpu", "avx2", "avx512f"}),
        ("Processor\t: ARMv8\nFeatures\t: fp asimd\n", None),
    ],
)
def test_a_processor_tells_its_instructions(tmp_path, text, expected):
    path = tmp_path / "cpuinfo"
    path.write_text(text, encoding="utf-8")
    assert read_instructions(path) == expected
    assert read_instructions(tmp_path / "missing") is None


def test_the_asynchronous_gpu_allocator_is_noted():
    variables = (ONEDNN_OFF, BFC_ON, ("TF_GPU_ALLOCATOR", "cuda_malloc_async"))
    assert codes(make_software(variables=variables)) == {"SNG907"}


def test_a_limited_address_space_breaks_cuda_only_where_there_is_a_gpu():
    limits = (Limit("address space", "ulimit -v", Size("8 GiB")),)
    assert codes(QUIET, make_host(), limits) == set()
    assert codes(QUIET, make_host(gpus=(GPU,)), limits) == {"SNG908", "SNG909"}


def test_memory_growth_silences_the_note_about_full_cards():
    variables = (ONEDNN_OFF, BFC_ON, ("TF_FORCE_GPU_ALLOW_GROWTH", "true"))
    assert codes(make_software(variables=variables), make_host(gpus=(GPU,))) == set()


@pytest.mark.parametrize(
    ("machine", "variables", "allocator"),
    [
        ("x86_64", (), "mklcpu"),
        ("aarch64", (), "malloc"),
        ("x86_64", (ONEDNN_OFF,), "malloc"),
        ("aarch64", (BFC_ON,), "bfc"),
        ("aarch64", (("TF_ENABLE_ONEDNN_OPTS", "1"),), "mklcpu"),
    ],
)
def test_the_cpu_allocator_follows_from_machine_and_variables(machine, variables, allocator):
    software = make_software(machine=machine, variables=variables)
    assert software.cpu_allocator.split()[0] == allocator


@pytest.mark.tensorflow
def test_this_machine_is_examined():
    # GIVEN the TensorFlow that is installed here WHEN it is looked for without importing it
    import tensorflow

    software = detect_software({"TF_GPU_ALLOCATOR": "x", "PATH": "/"})
    # THEN what TensorFlow says of itself was found
    assert software.tensorflow == tensorflow.__version__
    assert software.cuda_build is tensorflow.test.is_built_with_cuda()
    assert software.variables == (("TF_GPU_ALLOCATOR", "x"),)


def test_all_findings_of_this_machine_are_explained():
    for finding in examine().findings:
        assert finding.cause
        assert finding.remedy
        assert finding.evidence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = [('is_cuda_build', True)]", True),
        ("x = [('is_cuda_build', False)]", False),
        ("", None),
    ],
)
def test_a_build_tells_whether_it_is_for_cuda(tmp_path, text, expected):
    path = tmp_path / "build_info.py"
    path.write_text(text, encoding="utf-8")
    assert read_cuda_build(path) is expected
    assert read_cuda_build(tmp_path / "missing.py") is None


def test_limits_are_those_the_shell_shows():
    import resource

    limits = {limit.name: limit.size for limit in read_limits()}
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    assert limits["stack"] == (None if soft == resource.RLIM_INFINITY else soft)


def test_a_chip_with_few_registers_a_block_is_a_hazard_that_is_not_memory():
    nano = make_host(board="NVIDIA Jetson Nano Developer Kit")
    (finding,) = find_hazards(QUIET, nano, ())
    assert (finding.code, finding.is_memory) == ("SNG750", False)
    assert "Jetson Nano" in finding.evidence[0]
    growing = make_software(variables=(ONEDNN_OFF, BFC_ON, ("TF_FORCE_GPU_ALLOW_GROWTH", "true")))
    small = replace(GPU, compute_capability=(6, 2))
    assert codes(growing, make_host(gpus=(GPU, small))) == {"SNG750"}
    assert codes(growing, make_host(gpus=(GPU,))) == set()
