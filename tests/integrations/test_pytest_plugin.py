"""The pytest plugin, as pytest runs it: marker, fixture, messages, and what it does not load."""

from importlib.metadata import entry_points

import pytest

# Here already: what a run inside this process imports first, pytester forgets after it, and the
# next run has a second copy of it.
from snugly.devices import process
from snugly.integrations import pytest_plugin

pytest_plugins = ["pytester"]

PLUGIN = "snugly.integrations.pytest_plugin"

# What malloc has freed before it may hand out again, however large, and then nothing is added.
FRESH = """
import mmap
import pytest

def fresh(mebibytes):
    block = mmap.mmap(-1, mebibytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(0, len(block), mmap.PAGESIZE):
        block[page] = 1
    return block
"""


@pytest.fixture
def plugin(pytester, monkeypatch):
    """Runs pytest with this plugin alone, on the given text of a test file."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(text, *arguments, apart=False):
        pytester.makepyfile(f"{FRESH}\n{text}")
        arguments = ("--strict-markers", "-W", "error", *arguments)
        if apart:
            return pytester.runpytest_subprocess("-p", PLUGIN, *arguments, timeout=120)
        return pytester.runpytest_inprocess(*arguments, plugins=[pytest_plugin])

    return run


def test_pytest_finds_the_plugin_by_itself():
    (found,) = entry_points(group="pytest11", name="snugly")
    assert found.value == PLUGIN


def test_a_test_that_holds_more_than_it_may_fails_with_the_figures(plugin):
    result = plugin("""
@pytest.mark.fits_in("32MiB", of="added")
def test_large():
    block = fresh(64)  # free again before anybody looks

@pytest.mark.fits_in("128MiB", of="added")
def test_small():
    fresh(64)

@pytest.mark.fits_in("1MiB")
def test_whole_process(): ...

@pytest.mark.fits_in(1 << 50)
def test_bytes(): ...
""")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "the test added 6* MiB at its peak (measured), 32 MiB is allowed",
            "hint: `snugly.record` inside the test*",
            "the process occupied * at its peak (measured), 1 MiB is allowed",
            'hint: the process keeps what earlier tests loaded; of="added" counts*',
        ]
    )
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")  # no traceback into the plugin


def test_fixtures_and_other_tests_are_not_what_a_test_adds(plugin):
    result = plugin("""
@pytest.fixture
def block():
    return fresh(64)

def test_before():
    fresh(96)

@pytest.mark.fits_in("32MiB", of="added")
def test_it(block): ...
""")
    result.assert_outcomes(passed=2)


def test_a_test_that_fails_keeps_its_own_reason(plugin):
    result = plugin("""
@pytest.mark.fits_in("1MiB")
def test_it():
    assert 1 == 2
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2", "*Captured memory call*", "*1 MiB is allowed"])
    result.stdout.no_fnmatch_line("*hint:*")


def test_the_nearest_marker_counts(plugin):
    result = plugin("""
@pytest.mark.fits_in("1MiB", of="added")
@pytest.mark.fits_in("8TiB")
class TestAll:
    @pytest.mark.fits_in("8TiB", of="added")
    def test_it(self):
        fresh(64)
    def test_other(self):
        fresh(64)
""")
    result.assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ('"4 bananas"', "'bananas' is not a unit of memory", "write a size such as 512MiB*"),
        ("", "it takes a size, of= and device=, not ()", '*fits_in("2GiB")*'),
        ('"2GiB", off="device"', "*not ('2GiB', off='device')", '*fits_in("2GiB")*'),
        ('"2GiB", of="gpu"', "of='gpu' is not known", 'give one of "process", "added", "device"'),
        ('"2GiB", device="GPU:1"', "device='GPU:1' needs of=\"device\"", 'add of="device"'),
    ],
)
def test_a_marker_that_cannot_be_understood_is_a_usage_error(plugin, arguments, message, hint):
    result = plugin(f"@pytest.mark.fits_in({arguments})\ndef test_it(): ...")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *::test_it: @pytest.mark.fits_in: *{message}"])
    result.stderr.fnmatch_lines([f"hint: {hint}"])


def test_the_marker_explains_itself(plugin):
    result = plugin("", "--markers")
    result.stdout.fnmatch_lines(['@pytest.mark.fits_in(size, of="process", device=None): *'])


def test_growth_is_found_and_a_plateau_is_not(plugin):
    result = plugin("""
kept = []
cache = {}

def test_leak(memory_growth):
    memory_growth(lambda: kept.append(bytearray(1 << 20)))

def test_allowed(memory_growth):
    growth = memory_growth(lambda: kept.append(bytearray(1 << 20)), 12, "2MiB")
    assert growth.iterations == 12 and growth.process > 0

def test_cache(memory_growth):
    def step():
        cache.setdefault(len(cache) % 16, bytearray(1 << 20))
    memory_growth(step)

def test_taken_once(memory_growth):
    turns = []
    def step():
        turns.append(0)
        if len(turns) == 14:
            kept.append(bytearray(64 << 20))
    memory_growth(step)

def test_bad(memory_growth):
    memory_growth(print, at_most="4 bananas")
""")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*Failed: the process grows by 1* MiB an iteration*; 64 KiB is allowed",
            "*hint: `snugly profile --leaks SCRIPT` names*",
            "*InvalidSizeError: cannot read '4 bananas'*",
        ]
    )


def test_nothing_is_loaded_that_nobody_asked_for(plugin):
    result = plugin(
        """
import sys

def test_it():
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert not loaded & {"tensorflow", "keras", "numpy", "psutil", "rich", "IPython"}
    assert "snugly.units" not in sys.modules
""",
        apart=True,
    )
    result.assert_outcomes(passed=1)


def test_a_limit_on_the_process_loads_no_tensorflow(plugin):
    result = plugin(
        """
import sys

@pytest.mark.fits_in("8TiB")
def test_it(memory_growth):
    memory_growth(lambda: None)
    assert "tensorflow" not in sys.modules
""",
        apart=True,
    )
    result.assert_outcomes(passed=1)


def test_with_xdist_each_worker_watches_its_own_tests(plugin):
    result = plugin(
        """
@pytest.mark.fits_in("32MiB", of="added")
@pytest.mark.parametrize("mebibytes", [1, 64, 2, 65])
def test_it(mebibytes):
    bytearray(mebibytes << 20)
""",
        *("-p", "xdist.plugin", "-n", "2"),
        apart=True,
    )
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["the test added 6?* MiB at its peak (measured), 32 MiB is *"])


@pytest.mark.tensorflow
def test_a_device_is_limited_by_what_its_allocator_hands_out(plugin):
    result = plugin(
        """
def test_nothing_was_handed_out_before(): ...

@pytest.mark.fits_in("32MiB", of="device", device="CPU:0")
def test_large_and_tensorflow_is_started_here():
    import tensorflow as tf
    tf.ones((64, 512, 512))

@pytest.mark.fits_in("32MiB", of="device", device="CPU:0")
def test_small():
    import tensorflow as tf
    tf.ones((8, 512, 512))

@pytest.mark.fits_in("32MiB", of="device", device="GPU:7")
def test_unknown(): ...

def test_kept_tensors(memory_growth):
    import tensorflow as tf
    kept = []
    with pytest.raises(pytest.fail.Exception, match="CPU:0's allocator by [1-9]"):
        memory_growth(lambda: kept.append(tf.ones((1, 512, 512)) + 1))

def test_healthy_training(memory_growth):
    import keras, numpy
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(64)])
    model.compile("adam", "mse")
    x, y = numpy.zeros((64, 8)), numpy.zeros((64, 64))
    memory_growth(lambda: model.train_on_batch(x, y))
""",
        apart=True,
    )
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(
        [
            "CPU:0's allocator handed out 64* MiB at its peak (measured), 32 MiB is allowed",
            "*PytestWarning: *nothing was measured: TensorFlow was not used, or keeps no figures*",
        ]
    )


def test_a_peak_that_cannot_be_reset_is_said(plugin, monkeypatch):
    monkeypatch.setattr(process, "reset_peak_resident", lambda: False)
    result = plugin("@pytest.mark.fits_in('8TiB')\ndef test_it(): ...")
    result.assert_outcomes(failed=1)  # warnings are errors here
    result.stdout.fnmatch_lines(["*a short rise may be missed*"])
