"""Reading files, notebooks and folders; ignoring; what cannot be read."""

import json
import os
import subprocess
import sys

import pytest

import snugly
from snugly.errors import InputError, ProgramNotFoundError, UnreadableProgramError, UsageError
from snugly.linting.jobs import FEWEST_FILES, in_processes
from snugly.linting.lint import lint_files, lint_text
from snugly.linting.notebooks import without_magics
from snugly.linting.sources import find_files

HUGE = "import tensorflow as tf\nx = tf.random.normal([10000, 10000, 10000])\n"


def write(path, text, encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding)
    return path


def codes(text):
    return [finding.code for finding in lint_text(text)]


def test_the_contracts_line_is_found_with_its_size(tmp_path):
    [finding] = snugly.lint([write(tmp_path / "lint_me.py", HUGE)])
    assert (finding.code, finding.line) == ("SNG440", 2)
    assert finding.path == str(tmp_path / "lint_me.py")
    assert "3.6 TiB (computed: 10000 × 10000 × 10000 of float32)" in (finding.message or "")


def test_one_path_need_not_be_in_a_list(tmp_path):
    assert len(snugly.lint(write(tmp_path / "a.py", HUGE))) == 1


def test_a_folder_is_searched_and_environments_are_not(tmp_path):
    write(tmp_path / "a/b.py", HUGE)
    write(tmp_path / ".hidden/c.py", HUGE)
    write(tmp_path / "thing/pyvenv.cfg", "")
    write(tmp_path / "thing/d.py", HUGE)
    write(tmp_path / "e.txt", HUGE)
    assert list(find_files([tmp_path, tmp_path / "a/b.py"])) == [str(tmp_path / "a/b.py")]


def test_a_stated_memory_is_the_limit(tmp_path):
    path = write(tmp_path / "a.py", "import numpy as np\nx = np.zeros((1000, 1000, 1000))\n")
    assert snugly.lint(path) == []
    [finding] = snugly.lint(path, memory=2**30)
    assert "1 GiB (stated)" in (finding.message or "")


@pytest.mark.parametrize(
    "comment",
    [
        "# snugly: ignore[SNG440] on purpose",
        "# snugly: ignore",
        "# snugly: ignore[impossible-size]",
    ],
)
def test_a_line_can_be_ignored(comment):
    assert codes(HUGE.rstrip() + f"  {comment}\n") == []


def test_ignoring_holds_for_its_code_its_line_and_no_string():
    assert codes(HUGE.rstrip() + "  # snugly: ignore[SNG404]\n") == ["SNG440"]
    assert codes("# snugly: ignore\n" + HUGE) == ["SNG440"]
    assert codes(HUGE + "s = '# snugly: ignore'\n") == ["SNG440"]
    above = "import tensorflow as tf\n# snugly: ignore[SNG440]\nx = tf.zeros([10**5, 10**5, 99])\n"
    assert codes(above) == []
    over_lines = (
        "import tensorflow as tf\nx = tf.zeros(\n    [10**5, 10**5, 99],  # snugly: ignore\n)\n"
    )
    assert codes(over_lines) == []


def test_an_ignore_without_use_is_noted_and_is_no_finding(tmp_path):
    path = write(tmp_path / "a.py", "import tensorflow as tf  # snugly: ignore[SNG404]\n")
    outcome = lint_files([path])
    assert outcome.findings == []
    assert len(outcome.notes) == 1


def notebook(*cells):
    return json.dumps(
        {"nbformat": 4, "cells": [{"cell_type": "code", "source": list(one)} for one in cells]}
    )


def test_a_notebook_is_told_by_cell_and_line(tmp_path):
    # GIVEN magics, shell commands and help between the Python
    text = notebook(
        ["%matplotlib inline\n", "import tensorflow as tf\n", "!pip install \\\n", "   x\n"],
        ["%%bash\n", "for i in 1 2; do echo; done\n"],
        ["%%time\n", "tf.zeros?\n", "%time x = tf.random.normal([10000, 10000, 10000])\n"],
        ["  print('%d'\n", "  % 3)\n", "  await work()\n"],
    )
    # WHEN it is linted
    [finding] = snugly.lint(write(tmp_path / "n.ipynb", text))
    # THEN the line is that of the cell
    assert (finding.line, finding.evidence) == (3, ("cell 3",))
    assert (finding.message or "").startswith("cell 3: ")


def test_a_line_that_a_message_names_is_told_by_its_cell_too(tmp_path):
    text = notebook(
        ["import keras\n", "def build():\n", "    return keras.Sequential()\n"],
        ["for _ in range(99):\n", "    model = build()\n"],
    )
    [finding] = snugly.lint(write(tmp_path / "n.ipynb", text))
    assert (finding.line, "(in build(), cell 1, line 3)" in (finding.message or "")) == (2, True)


def test_a_broken_cell_is_told_and_the_others_are_looked_at(tmp_path):
    text = notebook(["def f(:\n"], [HUGE])
    outcome = lint_files([write(tmp_path / "n.ipynb", text)])
    assert [finding.code for finding in outcome.findings] == ["SNG440"]
    assert "cell 1, line 1" in str(outcome.problems[0])


def test_magics_leave_what_is_python():
    assert without_magics("files = !ls\n%time f()\nx = %who") == ["files = None", "f()", "x = None"]


def test_a_missing_file_a_syntax_error_and_noise_are_input_errors(tmp_path):
    with pytest.raises(ProgramNotFoundError):
        snugly.lint(tmp_path / "none.py")
    with pytest.raises(UnreadableProgramError, match="line 2"):
        snugly.lint(write(tmp_path / "a.py", "x = 1\ndef f(:\n"))
    (tmp_path / "b.py").write_bytes(b"x = 1\n\xff\xfe\x00")
    with pytest.raises(UnreadableProgramError, match="line 2"):
        snugly.lint(tmp_path / "b.py")
    (tmp_path / "c.py").write_bytes(b"x = '\x00'")
    with pytest.raises(UnreadableProgramError):
        snugly.lint(tmp_path / "c.py")
    with pytest.raises(UnreadableProgramError, match="not a notebook"):
        snugly.lint(write(tmp_path / "d.ipynb", "[]"))
    with pytest.raises(UnreadableProgramError):
        snugly.lint(write(tmp_path / "e.py", "# -*- coding: klingon -*-\n"))


def test_other_encodings_are_honoured(tmp_path):
    latin = write(tmp_path / "a.py", "# -*- coding: latin-1 -*-\n# é\n" + HUGE, "latin-1")
    assert [one.line for one in snugly.lint(latin)] == [4]
    marked = write(tmp_path / "b.py", HUGE, "utf-8-sig")
    assert [one.line for one in snugly.lint(marked)] == [2]


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "large.py"
    with path.open("wb") as file:
        file.truncate(2**36)  # sparse: takes no disk
    with pytest.raises(InputError, match="is not parsed"):
        snugly.lint(path)


@pytest.mark.parametrize(
    "text",
    ["x = " + "(" * 5000 + ")" * 5000, "x = " + "+".join(["1"] * 50_000), "x" + ".y" * 20_000],
)
def test_deep_nesting_is_no_crash(text):
    try:
        assert lint_text(f"import tensorflow as tf\n{text}\n") == []
    except InputError as error:
        assert error.hint  # noqa: PT017 - either answer is right; a crash is not


def test_a_hundred_thousand_lines_are_looked_at():
    body = "".join(
        f"def f{i}(a):\n    b = tf.zeros([{i % 9}, 2])\n    return a + b\n\n" for i in range(25_000)
    )
    text = f"import tensorflow as tf\n{body}x = tf.zeros([10**6, 10**6])\n"
    assert [one.line for one in lint_text(text)] == [100_002]


def test_linted_code_is_never_executed_and_tensorflow_is_not_loaded(tmp_path):
    path = write(tmp_path / "a.py", f"import os\nos.abort()\n{HUGE}")
    code = (
        "import sys, snugly\n"
        f"assert len(snugly.lint({str(path)!r})) == 1\n"
        "assert not {'tensorflow', 'keras', 'libcst', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=os.environ)


def test_rules_are_selected_by_code_beginning_and_name():
    text = HUGE + "y = tf.log(x)\n"
    assert [one.code for one in lint_text(text, select=["SNG44"])] == ["SNG440", "SNG441"]
    assert [one.code for one in lint_text(text, select=["impossible-size"])] == ["SNG440"]
    assert [one.code for one in lint_text(text, ignore=["sng440"])] == ["SNG441"]
    with pytest.raises(UsageError, match="predict-in-lop") as caught:
        lint_text(text, select=["predict-in-lop"])
    assert "predict-in-loop" in caught.value.hint


LIST_OF_ALL = "batches = list(ds.as_numpy_iterator())"


def test_rules_about_growth_are_not_asked_in_unit_tests():
    # GIVEN what tests do with data that is small on purpose
    case = (
        "import tensorflow as tf\n"
        "class DataTest(tf.test.TestCase):\n"
        "    def test_all(self):\n"
        "        ds = tf.data.TFRecordDataset('a')\n"
        f"        {LIST_OF_ALL}\n"
    )
    function = (
        "import pytest\nimport tensorflow as tf\n"
        "def test_all():\n    ds = tf.data.TFRecordDataset('a')\n"
        f"    {LIST_OF_ALL}\n"
    )
    assert codes(case) == codes(function) == []
    # WHEN the same is part of a program, also of one that calls a step a test
    assert codes(case.replace("tf.test.TestCase", "tf.Module")) == ["SNG423"]
    assert codes(function.replace("import pytest\n", "")) == ["SNG423"]
    assert codes(function.replace("test_all()", "test_step(ds)")) == ["SNG423"]


def test_what_fails_or_could_never_fit_is_told_in_unit_tests_too():
    inside = "class SizeTest(tf.test.TestCase):\n    def test_it(self):\n        "
    assert codes(f"import tensorflow as tf\n{inside}tf.zeros([10000, 10000, 10000])\n") == [
        "SNG440"
    ]
    assert codes(f"import tensorflow as tf\n{inside}tf.placeholder(tf.float32)\n") == ["SNG441"]


def test_a_packages_own_files_do_not_count_as_its_import(tmp_path):
    # GIVEN a variable that is set behind an import of keras
    text = "from keras.src import api\nimport os\nos.environ['TF_NUM_INTEROP_THREADS'] = '1'\n"
    outside = write(tmp_path / "train.py", text)
    write(tmp_path / "keras" / "__init__.py", "")
    write(tmp_path / "keras" / "src" / "__init__.py", "")
    inside = write(tmp_path / "keras" / "src" / "config.py", text)
    assert [one.code for one in snugly.lint([outside])] == ["SNG422"]
    assert snugly.lint([inside]) == []


def test_several_processes_find_the_same_in_the_same_order(tmp_path):
    # GIVEN files of all kinds, more than one process is asked for
    for number in range(FEWEST_FILES + 5):
        write(tmp_path / f"part_{number:03}.py", HUGE if number % 3 else "x = 1\n")
    write(tmp_path / "broken.py", "def\n")
    write(tmp_path / "part_900.py", "import tensorflow as tf  # snugly: ignore\n")
    alone, shared = lint_files([tmp_path]), lint_files([tmp_path], jobs=2)
    assert alone.findings == shared.findings
    assert len(shared.findings) == 30
    assert (alone.files, alone.notes) == (shared.files, shared.notes)
    assert [str(one) for one in alone.problems] == [str(one) for one in shared.problems]
    assert shared.problems[0].hint == alone.problems[0].hint


def test_few_files_start_no_processes(tmp_path):
    write(tmp_path / "a.py", HUGE)
    assert in_processes([str(tmp_path / "a.py")], ["SNG440"], None, 8) is None


def test_names_that_are_computed_from_each_other_are_followed_once():
    # GIVEN sums that double what is to be followed with every line: 2 ** 40 ways
    lines = ["import tensorflow as tf", "a0 = 2"]
    lines += [f"a{n} = a{n - 1} + a{n - 1}" for n in range(1, 41)]
    assert codes("\n".join([*lines, "tf.zeros([a9, a9])\n"])) == []
