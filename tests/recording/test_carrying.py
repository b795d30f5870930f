"""What travels into a fresh process by value, and what is found there by its name."""

import sys

import pytest

from snugly.recording.carrying import _users_modules


@pytest.fixture
def importable(tmp_path, monkeypatch):
    """A folder that modules are imported from; those that a test imports are forgotten."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def travelling():
    return {module.__name__ for module in _users_modules()}


def test_the_users_own_modules_travel(importable):
    (importable / "of_the_user").mkdir()
    (importable / "of_the_user/__init__.py").touch()
    (importable / "of_the_user/layers.py").touch()
    import of_the_user.layers  # noqa: F401

    assert {"of_the_user", "of_the_user.layers"} <= travelling()


def test_what_was_installed_into_a_folder_stays_where_it_is(importable):
    (importable / "installed/inner").mkdir(parents=True)
    for name in ("installed/__init__.py", "installed/inner/__init__.py", "alone.py"):
        (importable / name).touch()
    (importable / "installed-1.0.dist-info").mkdir()
    import alone  # noqa: F401
    import installed.inner  # noqa: F401

    assert not {"installed", "installed.inner", "alone"} & travelling()


def test_a_module_under_another_name_than_its_own_does_not_travel(importable, monkeypatch):
    (importable / "plain.py").touch()
    import plain

    monkeypatch.setitem(sys.modules, "another.name", plain)
    assert [module for module in _users_modules() if module is plain] == [plain]
    monkeypatch.delitem(sys.modules, "plain")
    assert plain not in list(_users_modules())
