"""--fix: changes that cannot alter a result, with formatting kept, made once."""

import stat

import pytest

from snugly.linting.fixing import changes_for
from snugly.linting.lint import lint_files

BEFORE = """\
import tensorflow as tf   # é stays
with tf.GradientTape( persistent=True,  watch_accessed_variables = False ) as tape:
    é = "ü"; y = tf.log( x )  # moved
g = tape.gradient(y, x)
ds = (ds.batch( 8 )
        .prefetch( 100 ))
"""
AFTER = """\
import tensorflow as tf   # é stays
with tf.GradientTape( watch_accessed_variables = False ) as tape:
    é = "ü"; y = tf.math.log( x )  # moved
g = tape.gradient(y, x)
ds = (ds.batch( 8 )
        .prefetch( tf.data.AUTOTUNE ))
"""


def fix(path):
    changes = changes_for(lint_files([path]).alarms)
    for change in changes:
        change.write()
    return changes


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_what_is_safe_is_changed_once_and_the_rest_stays(tmp_path, encoding):
    # GIVEN a file with its own formatting, umlauts before what is changed, and a mode
    path = tmp_path / "a.py"
    path.write_text(BEFORE, encoding=encoding)
    path.chmod(0o750)
    # WHEN it is fixed
    [change] = fix(path)
    # THEN three places are changed, and nothing else
    assert len(change.made) == 3
    assert path.read_text(encoding=encoding) == AFTER
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    # AND a second time there is nothing to do
    assert fix(path) == []
    assert [one.name for one in tmp_path.iterdir()] == ["a.py"]


def test_other_encodings_and_line_ends_stay(tmp_path):
    path = tmp_path / "a.py"
    text = "# -*- coding: latin-1 -*-\r\nimport tensorflow as tf\r\né = tf.log(x)\r\n"
    path.write_bytes(text.encode("latin-1"))
    fix(path)
    assert path.read_bytes() == text.replace("tf.log", "tf.math.log").encode("latin-1")


def test_a_tape_that_is_asked_twice_stays(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        "import tensorflow as tf\n"
        "for b in data:\n"
        "    with tf.GradientTape(persistent=True) as tape:\n"
        "        y = f(b)\n"
        "    g, h = tape.gradient(y, a), tape.gradient(y, c)\n"
    )
    assert len(lint_files([path]).findings) == 1
    assert fix(path) == []
