"""Doing something after an import, without importing: once, in time, and without a trace."""

import importlib
import importlib.resources
import importlib.util
import inspect
import linecache
import subprocess
import sys
import textwrap
import traceback

import pytest

from snugly.recording.importing import _Finder, when_imported


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Write modules into a folder that Python looks into; afterwards nothing of it is left."""
    monkeypatch.syspath_prepend(tmp_path)
    before, finders = set(sys.modules), list(sys.meta_path)

    def write(inside="", **texts):
        for name, text in texts.items():
            path = tmp_path / inside / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        importlib.invalidate_caches()

    yield write
    sys.meta_path[:] = finders
    for name in set(sys.modules) - before:
        if name.startswith("sample"):
            del sys.modules[name]


class Seen(list):
    """An action that notes the names of the modules it was called with."""

    def __call__(self, module):
        self.append(module.__name__)


# --------------------------------------------------------------------------------- in time


def test_it_happens_once_after_the_import(modules):
    modules(sample_a="value = 5")
    values = []
    when_imported("sample_a", lambda module: values.append(module.value))
    assert values == []
    import sample_a

    assert values == [5]
    importlib.reload(sample_a)
    importlib.import_module("sample_a")
    assert values == [5]


def test_it_happens_at_once_where_the_module_is_there(modules):
    modules(sample_b="value = 5")
    importlib.import_module("sample_b")
    finders = list(sys.meta_path)
    seen = Seen()
    when_imported("sample_b", seen)
    assert seen == ["sample_b"]
    assert sys.meta_path == finders


def test_it_does_not_import_anything_itself(modules):
    modules(sample_c="raise SystemExit")
    when_imported("sample_c", Seen())
    assert "sample_c" not in sys.modules


def test_every_action_happens_in_its_order(modules):
    modules(sample_d="", sample_e="")
    seen = []
    when_imported("sample_d", lambda _: seen.append(1))
    when_imported("sample_e", lambda _: seen.append(2))
    when_imported("sample_d", lambda _: seen.append(3))
    importlib.import_module("sample_d")
    assert seen == [1, 3]
    importlib.import_module("sample_e")
    assert seen == [1, 3, 2]
    assert len([finder for finder in sys.meta_path if isinstance(finder, _Finder)]) == 1


def test_an_action_may_ask_for_another_module(modules):
    modules(sample_f="import sample_g", sample_g="")
    seen = Seen()
    when_imported("sample_f", lambda _: when_imported("sample_g", seen))
    importlib.import_module("sample_f")
    assert seen == ["sample_g"]


def test_whoever_imports_in_the_middle_of_an_import_is_not_too_early(modules):
    # GIVEN two modules that import each other
    modules(sample_h="import sample_i\nvalue = 1", sample_i="import sample_h")
    values = []
    when_imported("sample_h", lambda module: values.append(module.value))
    importlib.import_module("sample_i")
    # THEN the action sees the module when it is done
    assert values == [1]


# ------------------------------------------------------------------------ looking, failing


def test_looking_for_a_module_is_not_importing_it(modules):
    # GIVEN somebody who only wants to know whether there is such a module
    modules(sample_j="value = 5")
    seen = Seen()
    when_imported("sample_j", seen)
    spec = importlib.util.find_spec("sample_j")
    assert spec is not None
    assert spec.origin is not None
    assert spec.origin.endswith("sample_j.py")
    assert "value = 5" in spec.loader.get_source("sample_j")
    assert seen == []
    # THEN it still happens after the import
    importlib.import_module("sample_j")
    assert seen == ["sample_j"]


def test_a_module_that_is_not_there_is_as_missing_as_ever(modules):
    modules()
    seen = Seen()
    when_imported("sample_missing", seen)
    assert importlib.util.find_spec("sample_missing") is None
    with pytest.raises(ModuleNotFoundError, match="No module named 'sample_missing'"):
        importlib.import_module("sample_missing")
    assert seen == []


def test_an_import_that_fails_leaves_it_for_the_next(modules):
    modules(sample_k="raise RuntimeError('not yet')")
    seen = Seen()
    when_imported("sample_k", seen)
    with pytest.raises(RuntimeError, match="not yet"):
        importlib.import_module("sample_k")
    assert seen == []
    assert "sample_k" not in sys.modules
    modules(sample_k="value = 12345")
    importlib.import_module("sample_k")
    assert seen == ["sample_k"]


# ---------------------------------------------------------------------------------- packages


def test_modules_inside_a_package_are_found_by_their_full_name(modules):
    modules("sample_pack", __init__="", inner="value = 5")
    seen = Seen()
    when_imported("sample_pack.inner", seen)
    importlib.import_module("sample_pack")
    assert seen == []
    from sample_pack import inner

    assert seen == ["sample_pack.inner"]
    assert inner.value == 5


def test_a_package_keeps_its_modules_and_its_data(modules, tmp_path):
    modules("sample_box", __init__="from sample_box import inner", inner="value = 5")
    (tmp_path / "sample_box" / "data.txt").write_text("data", encoding="utf-8")
    seen = Seen()
    when_imported("sample_box", seen)
    box = importlib.import_module("sample_box")
    assert seen == ["sample_box"]
    assert box.inner.value == 5
    assert importlib.resources.files("sample_box").joinpath("data.txt").read_text() == "data"


# ---------------------------------------------------------------------------- without a trace


def test_afterwards_the_spec_is_as_if_nobody_had_been_there(modules):
    modules(sample_l="", sample_m="")
    when_imported("sample_l", Seen())
    watched, other = importlib.import_module("sample_l"), importlib.import_module("sample_m")
    assert type(watched.__spec__.loader) is type(other.__spec__.loader)
    assert watched.__spec__.origin == watched.__file__
    assert watched.__spec__.cached == watched.__cached__


def test_afterwards_the_module_names_its_own_loader(modules):
    modules(sample_n="")
    when_imported("sample_n", Seen())
    module = importlib.import_module("sample_n")
    assert module.__loader__ is module.__spec__.loader


def test_source_and_tracebacks_are_there(modules):
    modules(
        sample_o="""\
        def fail():
            raise ValueError("on the second line")
        """
    )
    when_imported("sample_o", Seen())
    module = importlib.import_module("sample_o")
    assert inspect.getsource(module.fail).splitlines()[0] == "def fail():"
    linecache.clearcache()
    with pytest.raises(ValueError, match="second") as failed:
        module.fail()
    last = traceback.extract_tb(failed.value.__traceback__)[-1]
    assert (last.lineno, last.line) == (2, 'raise ValueError("on the second line")')
    # AND none of our frames stand between
    assert len(traceback.extract_tb(failed.value.__traceback__)) == 2


def test_what_is_built_in_or_compiled_works_as_well():
    # GIVEN modules without source, in a process that has not loaded them
    code = """
import sys
from snugly.recording.importing import when_imported
names = ["_bisect", "_lsprof", "_xxsubinterpreters"]
names = [name for name in names if name not in sys.modules]
seen = []
for name in names:
    when_imported(name, lambda module: seen.append(module.__name__))
for name in names:
    __import__(name)
assert names
assert seen == names, (seen, names)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
