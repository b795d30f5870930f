"""Work in processes of their own: a crash there is an error here."""

import sys
import textwrap

import pytest

from snugly.errors import InputError, MissingDependencyError
from snugly.lite import children

WORK = {
    "good": "return {'made': 3}",
    "refused": "raise InputError('not so', code='SNG571', hint='do this')",
    "missing": "raise MissingDependencyError('no such package', hint='pip install it')",
    "failed": "raise ValueError('first line' + chr(10) + 'second')",
    "crashed": "import os; os.abort()",
    "left": "import os; print('last words', flush=True); os._exit(3)",
    "hung": "import time; time.sleep(60)",
    "greedy": "return {'made': len(bytearray(1 << 40))}",
    "damaged": "(folder / 'answer.json').write_text('{'); import os; os._exit(0)",
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a piece of work as a module of the room would be run."""

    def run_work(name, seconds=60.0):
        script = tmp_path / f"{name}.py"
        text = f"""
            from snugly.errors import InputError, MissingDependencyError
            from snugly.lite.children import answering
            def work(request, folder):
                {WORK[name]}
            answering(work)
        """
        script.write_text(textwrap.dedent(text))
        starter = tmp_path / "python"
        starter.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$4"\n')
        starter.chmod(0o755)
        monkeypatch.setattr(children.sys, "executable", str(starter))
        with children.folder_for({"asked": 1}) as folder:
            return children.run_child("any", folder, "the worker", seconds=seconds)

    return run_work


def test_an_answer_comes_back(run):
    assert run("good") == {"made": 3}


@pytest.mark.parametrize(
    ("name", "message", "code"),
    [
        ("refused", "not so", "SNG571"),
        ("failed", "ValueError: first line", "SNG573"),
        ("crashed", "the worker was ended by SIGABRT", "SNG573"),
        ("left", "exit code 3: last words", "SNG573"),
        ("greedy", "not enough memory", "SNG573"),
        ("damaged", "the worker ended with exit code 0", "SNG573"),
    ],
)
def test_whatever_becomes_of_it_is_an_error_with_a_hint(run, name, message, code):
    with pytest.raises(InputError, match=message) as caught:
        run(name)
    assert caught.value.code == code
    assert caught.value.hint


def test_what_takes_too_long_is_ended(run):
    with pytest.raises(InputError, match="took more than 1 seconds"):
        run("hung", 1.0)


def test_a_missing_package_is_told_apart(run):
    with pytest.raises(MissingDependencyError) as caught:
        run("missing")
    assert caught.value.hint == "pip install it"
