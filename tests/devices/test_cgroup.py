"""Control group limits, read from real folders laid out as the kernel does."""

import pytest

from snugly.devices.cgroup import read_cgroup_limit

UNLIMITED_V1 = 9_223_372_036_854_771_712  # what the kernel writes on 4 KiB pages


def lay_out(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")


def test_version_2_reads_the_own_group(tmp_path):
    # GIVEN a process in a limited group
    group = "sys/fs/cgroup/user.slice/job"
    lay_out(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user.slice/job",
            f"{group}/memory.max": 4096,
            f"{group}/memory.current": 1024,
        },
    )
    # WHEN the limit is read
    limit = read_cgroup_limit(tmp_path)
    # THEN it is that group's
    assert (limit.version, limit.limit, limit.used, limit.available) == (2, 4096, 1024, 3072)
    assert limit.path == tmp_path / group


def test_version_2_takes_the_smallest_limit_on_the_way_up(tmp_path):
    lay_out(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a/b/c",
            "sys/fs/cgroup/a/b/c/memory.max": "max",
            "sys/fs/cgroup/a/b/memory.max": 8192,
            "sys/fs/cgroup/a/memory.max": 2048,
        },
    )
    assert read_cgroup_limit(tmp_path).limit == 2048


def test_inside_a_container_the_mounted_root_counts(tmp_path):
    # GIVEN a path that exists on the host only
    lay_out(
        tmp_path,
        {"proc/self/cgroup": "0::/docker/abc", "sys/fs/cgroup/memory.max": 1 << 30},
    )
    assert read_cgroup_limit(tmp_path).limit == 1 << 30


def test_a_path_outside_the_namespace_is_not_followed(tmp_path):
    lay_out(
        tmp_path / "inner",
        {"proc/self/cgroup": "0::/../../other", "sys/fs/cgroup/memory.max": "max"},
    )
    lay_out(tmp_path / "inner/sys/other", {"memory.max": 1})
    assert read_cgroup_limit(tmp_path / "inner") is None


def test_version_1_reads_the_memory_controller(tmp_path):
    lay_out(
        tmp_path,
        {
            "proc/self/cgroup": "12:cpu,cpuacct:/job\n5:memory:/job\n0::/",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": 4096,
            "sys/fs/cgroup/memory/job/memory.usage_in_bytes": 5000,
            "sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1,
        },
    )
    limit = read_cgroup_limit(tmp_path)
    assert (limit.version, limit.limit) == (1, 4096)
    assert limit.available == 0  # over its limit already, but never less than nothing


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/self/cgroup": "0::/"},
        {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max"},
        {
            "proc/self/cgroup": "5:memory:/",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1,
        },
        {"proc/self/cgroup": "nonsense", "sys/fs/cgroup/memory.max": "4096"},
    ],
)
def test_where_nothing_limits_nothing_is_reported(tmp_path, files):
    lay_out(tmp_path, files)
    assert read_cgroup_limit(tmp_path) is None
