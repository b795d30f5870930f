"""Exceptions are explained by their names and words, without what raised them."""

import subprocess
import sys

import pytest

import snugly
from snugly.explaining.exceptions import exit_code_of, text_of


def like_tensorflows(name, message):
    """An exception of TensorFlow's name, module and shape; the real one has `message` too."""
    kind = type(name, (Exception,), {"__module__": "tensorflow.python.framework.errors_impl"})
    error = kind(None, None, message)
    error.message = message
    return error


def test_the_contracts_example_is_memory():
    finding = snugly.explain(MemoryError("Unable to allocate 2.98 GiB"))[0]
    assert finding.is_memory
    assert finding.code == "SNG726"


@pytest.mark.parametrize(
    ("error", "code", "memory"),
    [
        (MemoryError(), "SNG726", True),
        (OSError(12, "Cannot allocate memory"), "SNG727", True),
        (OSError(24, "Too many open files"), "SNG736", False),
        (OSError(28, "No space left on device"), "SNG740", False),
        (RuntimeError("can't start new thread"), "SNG737", False),
        (RecursionError("maximum recursion depth exceeded"), "SNG744", False),
        (ModuleNotFoundError("No module named 'x'"), "SNG770", False),
        (KeyboardInterrupt(), "SNG796", False),
        (KeyError("memory"), "SNG799", False),
        (subprocess.CalledProcessError(-9, "x"), "SNG724", True),
        (subprocess.CalledProcessError(-11, "x"), "SNG793", False),
    ],
    ids=repr,
)
def test_pythons_own_exceptions(error, code, memory):
    finding = snugly.explain(error)[0]
    assert (finding.code, finding.is_memory) == (code, memory)


def test_tensorflows_exceptions_are_known_by_name():
    oom = like_tensorflows(
        "ResourceExhaustedError",
        "OOM when allocating tensor with shape[4,4] and type float on"
        " /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
    )
    assert snugly.explain(oom)[0].code == "SNG701"
    bare = like_tensorflows("ResourceExhaustedError", "{{function_node f}}")
    # The name alone stands for memory, open files, messages and quotas: it is no diagnosis.
    assert (snugly.explain(bare)[0].code, snugly.explain(bare)[0].is_memory) == ("SNG799", False)
    assert "quotas" in snugly.explain(bare)[0].cause
    launch = like_tensorflows("InternalError", "too many resources requested for launch")
    assert not snugly.explain(launch)[0].is_memory


def test_the_cause_of_an_exception_is_looked_at():
    error = RuntimeError("training failed")
    error.__cause__ = MemoryError("no room")
    assert snugly.explain(error)[0].code == "SNG726"
    error.__cause__, error.__suppress_context__ = None, False
    error.__context__ = MemoryError("no room")
    assert snugly.explain(error)[0].code == "SNG726"


def test_a_group_of_exceptions_is_looked_into():
    group = ExceptionGroup("several", [ValueError("x"), MemoryError("no room")])
    assert snugly.explain(group)[0].code == "SNG726"


def test_a_circle_of_causes_ends():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert text_of(first).count("ValueError") == 2


def test_an_exception_that_cannot_be_printed_is_no_trouble():
    class BrokenError(Exception):
        def __str__(self):
            raise RuntimeError

    assert text_of(BrokenError()).endswith("BrokenError")


def test_snuglys_own_errors_carry_their_code():
    refused = snugly.explain(snugly.MemoryLimitExceeded("too much"))[0]
    assert (refused.code, refused.is_memory) == ("SNG601", True)
    unknown = snugly.explain(snugly.UnknownDeviceError("no such", hint="look"))[0]
    assert (unknown.code, unknown.is_memory, unknown.remedy) == ("SNG201", False, "look")


def test_an_exit_code_is_taken_from_an_exception_that_has_one():
    assert exit_code_of(subprocess.CalledProcessError(137, "x")) == 137
    assert exit_code_of(ValueError()) is None


def test_explaining_imports_no_tensorflow():
    code = (
        "import snugly, sys; snugly.explain(MemoryError('x'));"
        " from snugly.cli import main; main(['explain', '--exit-code', '137']);"
        " print('LOADED', 'tensorflow' in sys.modules, 'keras' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "LOADED False False"
