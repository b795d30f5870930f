"""This host: what it offers, and how a board is recognised."""

import json
from pathlib import Path

import psutil

from snugly.devices import Host, detect_host, host_memory
from snugly.devices.cgroup import CgroupLimit
from snugly.units import Size


def make_host(**fields):
    known = {
        "total": Size("16 GiB"),
        "available": Size("12 GiB"),
        "cgroup": None,
        "gpus": (),
        "board": None,
    }
    return Host(**(known | fields))


def test_this_machine_is_seen_as_it_is():
    host = detect_host()
    assert host.total == psutil.virtual_memory().total
    assert 0 < host.offered.bytes <= host.total
    assert host.offered.provenance == "measured"
    data = host.to_data()
    assert json.loads(json.dumps(data)) == data


def test_a_container_offers_what_its_limit_leaves():
    # GIVEN a machine with 12 GiB free whose container may have 2 GiB, half of it used
    cgroup = CgroupLimit(2, Path("/sys/fs/cgroup"), Size("2 GiB"), Size("1 GiB"))
    host = make_host(cgroup=cgroup)
    # THEN the container counts
    assert host.offered.bytes == Size("1 GiB")
    assert "control group" in host.offered.description
    assert host.to_data()["cgroup"]["limit"] == Size("2 GiB")


def test_a_container_with_a_generous_limit_offers_what_the_machine_has():
    cgroup = CgroupLimit(2, Path("/sys/fs/cgroup"), Size("64 GiB"), Size(0))
    assert make_host(cgroup=cgroup).offered.bytes == Size("12 GiB")


def test_a_jetson_is_recognised_by_its_device_tree(tmp_path):
    # GIVEN the device tree of a board, whose strings end in a NUL byte
    model = tmp_path / "proc/device-tree/model"
    model.parent.mkdir(parents=True)
    model.write_bytes(b"NVIDIA Jetson Nano Developer Kit\0")
    # WHEN the host is looked at
    host = detect_host(tmp_path)
    # THEN it is known to share its memory between CPU and GPU
    assert host.board == "NVIDIA Jetson Nano Developer Kit"
    assert host.is_jetson


def test_other_boards_and_machines_are_no_jetsons(tmp_path):
    assert not make_host(board="Raspberry Pi 4 Model B Rev 1.4").is_jetson
    assert detect_host(tmp_path).board is None


def test_the_hosts_memory_alone_is_what_the_whole_look_says(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "sys/fs/cgroup/memory.max").write_text(f"{1 << 20}\n")
    (tmp_path / "sys/fs/cgroup/memory.current").write_text("0\n")

    assert host_memory(tmp_path) == detect_host(tmp_path).offered
    assert host_memory(tmp_path).bytes <= 1 << 20
