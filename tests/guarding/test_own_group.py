"""Control groups of the command's own, with recorded trees of files instead of a kernel."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from snugly.guarding.limits import prepare_child
from snugly.guarding.own_group import make_group, own_folders
from snugly.guarding.scope import may_limit, scoped

GIB = 1 << 30


def tree(root, group, files, line="0::/{}\n"):
    """A machine as /proc and /sys show it: one group with these files."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(line.format(group))
    base = "sys/fs/cgroup" if line.startswith("0::") else "sys/fs/cgroup/memory"
    folder = root / base / group
    folder.mkdir(parents=True)
    for name, text in {"cgroup.procs": f"{os.getpid()}\n", **files}.items():
        (folder / name).write_text(text)
    return folder


def test_a_group_of_version_2_that_is_ours_alone_gets_two_children(tmp_path):
    # GIVEN a group that was handed over to us and holds nobody else
    own = tree(tmp_path, "user/job", {"cgroup.controllers": "cpu memory pids\n"})

    # WHEN a group is asked for
    group = make_group(2 * GIB, root=tmp_path)

    # THEN we stand in one child, and the limit in the other
    assert group is not None
    assert (own / "snugly-guard/cgroup.procs").read_text() == str(os.getpid())
    assert (own / "cgroup.subtree_control").read_text() == "+memory"
    assert (group.folder / "memory.max").read_text() == str(2 * GIB)
    assert "memory.max" in group.told


def test_others_in_the_group_are_not_disturbed(tmp_path):
    own = tree(
        tmp_path,
        "session",
        {"cgroup.controllers": "memory\n", "cgroup.procs": f"{os.getpid()}\n12345\n"},
    )

    assert make_group(GIB, root=tmp_path) is None
    assert not (own / "snugly-guard").exists()


def test_without_the_memory_controller_there_is_no_group(tmp_path):
    tree(tmp_path, "job", {"cgroup.controllers": "cpu pids\n"})

    assert make_group(GIB, root=tmp_path) is None


def test_version_1_is_used_only_where_it_is_asked_for(tmp_path):
    own = tree(tmp_path, "jobs/7", {}, line="4:memory:/{}\n")

    assert make_group(GIB, "auto", root=tmp_path) is None
    group = make_group(GIB, "always", root=tmp_path)

    assert group is not None
    assert group.folder.parent == own
    assert (group.folder / "memory.limit_in_bytes").read_text() == str(GIB)


def test_never_means_never(tmp_path):
    tree(tmp_path, "job", {"cgroup.controllers": "memory\n"})

    assert make_group(GIB, "never", root=tmp_path) is None


def test_in_a_container_the_mounted_root_is_the_own_group(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/../../kubepods/pod1\n")
    mount = tmp_path / "sys/fs/cgroup"
    mount.mkdir(parents=True)
    (mount / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")

    assert list(own_folders(tmp_path)) == [(2, mount)]


def test_the_files_of_another_group_are_not_taken_for_ours(tmp_path):
    tree(tmp_path, "job", {"cgroup.procs": "1\n2\n", "cgroup.controllers": "memory\n"})

    assert list(own_folders(tmp_path)) == []


def test_kills_are_counted_in_the_group_itself_and_the_group_goes(tmp_path):
    tree(tmp_path, "job", {"cgroup.controllers": "memory\n"})
    group = make_group(GIB, root=tmp_path)
    assert group is not None
    assert group.oom_kills() is None
    (group.folder / "memory.events").write_text("low 0\nmax 3\noom 2\noom_kill 2\n")

    assert group.oom_kills() == 2

    # A folder of a real control group is removed with its files; here they are in the way.
    for file in group.folder.iterdir():
        file.unlink()
    group.close()
    assert not group.folder.exists()


def test_the_child_enters_before_it_becomes_the_command(tmp_path):
    # GIVEN a group, and a file for whoever enters
    tree(tmp_path, "job", {"cgroup.controllers": "memory\n"})
    group = make_group(GIB, root=tmp_path)
    assert group is not None
    assert group.entrance() is None
    (group.folder / "cgroup.procs").touch()
    entrance = group.entrance()
    assert entrance is not None

    # WHEN a command is started
    done = subprocess.run(
        ["/bin/sh", "-c", f"cat {group.folder}/cgroup.procs"],
        preexec_fn=prepare_child(None, set(), entrance),
        capture_output=True,
        check=True,
    )
    os.close(entrance)

    # THEN it found itself entered
    assert done.stdout == b"0"


def test_a_group_that_lets_nobody_in_does_not_keep_the_command_from_running():
    # GIVEN an entrance that fails as the kernel's does: written to, it gives an error
    with Path("/dev/full").open("wb", buffering=0) as full:
        done = subprocess.run(
            ["/bin/sh", "-c", "exit 7"],
            preexec_fn=prepare_child(None, set(), full.fileno()),
            check=False,
        )

    assert done.returncode == 7


def test_whether_the_command_is_in_the_group_is_seen_in_its_own_files(tmp_path):
    tree(tmp_path, "job", {"cgroup.controllers": "memory\n"})
    group = make_group(GIB, root=tmp_path)
    assert group is not None
    (tmp_path / "proc/7").mkdir()
    told = tmp_path / "proc/7/cgroup"

    told.write_text(f"1:cpu:/\n0::/job/{group.folder.name}\n")
    assert group.holds(7, tmp_path)
    told.write_text("1:cpu:/\n0::/job\n")
    assert not group.holds(7, tmp_path)
    assert not group.holds(8, tmp_path)


def manager(root, controllers, group="user.slice/user-1000.slice/session-3.scope"):
    """A machine on which user 1000 has a manager of systemd, and where we are in that group."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"0::/{group}\n")
    (root / "run/user/1000/systemd").mkdir(parents=True)
    (root / "run/user/1000/systemd/private").touch()
    service = root / "sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service"
    service.mkdir(parents=True)
    (service / "cgroup.controllers").write_text(controllers)


def test_a_user_manager_with_the_memory_controller_may_limit(tmp_path):
    manager(tmp_path, "memory pids\n")

    assert may_limit({}, tmp_path, user=1000)
    assert not may_limit({}, tmp_path, user=1001)


def test_a_user_manager_without_the_memory_controller_may_not(tmp_path):
    manager(tmp_path, "cpu pids\n")

    assert not may_limit({}, tmp_path, user=1000)


@pytest.mark.parametrize(
    "group",
    [
        "system.slice/slurmstepd.scope/job_7/step_0/user/task_0",
        "system.slice/train.service",
        "user.slice/user-1001.slice/session-4.scope",
        "",
    ],
)
def test_a_job_or_a_service_does_not_leave_the_group_that_holds_it(tmp_path, group):
    manager(tmp_path, "memory pids\n", group)

    assert not may_limit({}, tmp_path, user=1000)


def test_without_systemd_a_command_stays_as_it_is(tmp_path):
    assert scoped(["true"], GIB, {"PATH": str(tmp_path)}, tmp_path) is None


def test_a_manager_that_refuses_leaves_the_command_as_it_is(tmp_path):
    # GIVEN files that promise a scope, and a systemd-run that fails
    runner = tmp_path / "bin/systemd-run"
    runner.parent.mkdir()
    runner.write_text("#!/bin/sh\nexit 1\n")
    runner.chmod(0o755)
    environment = _promising(tmp_path)

    assert scoped(["true"], GIB, environment, tmp_path) is None


def test_a_scope_is_made_with_the_limit_and_becomes_the_command(tmp_path):
    runner = tmp_path / "bin/systemd-run"
    runner.parent.mkdir()
    runner.write_text('#!/bin/sh\nwhile [ "$1" != "--" ]; do shift; done; shift; exec "$@"\n')
    runner.chmod(0o755)

    words = scoped(["true", "x"], GIB, _promising(tmp_path), tmp_path)

    assert words is not None
    assert words[0] == str(runner)
    assert f"MemoryMax={GIB}" in words
    assert words[-3:] == ["--", "true", "x"]


def _promising(root):
    number = os.getuid()
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"0::/user.slice/user-{number}.slice/session-1.scope\n")
    (root / f"run/user/{number}/systemd").mkdir(parents=True)
    (root / f"run/user/{number}/systemd/private").touch()
    service = root / f"sys/fs/cgroup/user.slice/user-{number}.slice/user@{number}.service"
    service.mkdir(parents=True)
    (service / "cgroup.controllers").write_text("memory\n")
    return {"PATH": f"{root / 'bin'}:/usr/bin:/bin"}
