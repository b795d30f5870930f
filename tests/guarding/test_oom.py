"""The OOM killer's counter, in folders laid out as control groups are."""

import os

import pytest

from snugly.guarding.oom import oom_kills


def lay_out(root, line, folder, file, text, *, ours=True):  # noqa: PLR0913 - one layout
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"{line}\n")
    place = root / "sys/fs/cgroup" / folder
    place.mkdir(parents=True)
    (place / file).write_text(text)
    (place / "cgroup.procs").write_text(f"1\n{os.getpid() if ours else 2}\n")


@pytest.mark.parametrize(
    ("line", "folder", "file"),
    [
        ("0::/user.slice/a.scope", "user.slice/a.scope", "memory.events"),
        ("0::/docker/abc", "", "memory.events"),
        ("0::/../other", "", "memory.events"),
        ("4:memory:/job", "memory/job", "memory.oom_control"),
        ("4:cpu,memory:/docker/abc", "memory", "memory.oom_control"),
    ],
)
def test_the_counter_of_our_own_group_is_found(tmp_path, line, folder, file):
    lay_out(tmp_path, line, folder, file, "low 0\noom 1\noom_kill 3\n")
    assert oom_kills(tmp_path) == 3


def test_another_groups_counter_is_not_ours(tmp_path):
    lay_out(tmp_path, "0::/a", "", "memory.events", "oom_kill 3\n", ours=False)
    assert oom_kills(tmp_path) is None


def test_without_control_groups_nothing_is_known(tmp_path):
    assert oom_kills(tmp_path) is None


def test_a_kernel_without_the_counter_says_nothing(tmp_path):
    lay_out(tmp_path, "4:memory:/", "memory", "memory.oom_control", "under_oom 0\n")
    assert oom_kills(tmp_path) is None
