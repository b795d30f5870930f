"""The public names: pinned, lazy, and free of TensorFlow, each proven in a fresh process."""

import subprocess
import sys

import pytest

import snugly

SLOW = {"tensorflow", "keras", "numpy", "rich", "psutil", "pynvml", "IPython", "pytest", "dask"}
"""Packages that importing snugly must not load."""


def loaded_packages(code: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after running the code."""
    report = "import sys; print('LOADED', *{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    last = run.stdout.splitlines()[-1]
    assert last.startswith("LOADED ")
    return set(last.split()[1:])


def command(*words: str) -> str:
    return f"from snugly.cli import main\nassert main({list(words)!r}) == 0"


def test_public_names_are_pinned():
    assert sorted(snugly.__all__) == [
        "Budget",
        "Device",
        "Finding",
        "InputError",
        "MemoryLimitExceeded",
        "MemoryMonitor",
        "MissingDependencyError",
        "Prediction",
        "Record",
        "Size",
        "SnuglyError",
        "StopOnMemoryLimit",
        "Sweep",
        "UnknownDeviceError",
        "UnknownDimensionError",
        "UnsafeProgramError",
        "__version__",
        "checkpoint",
        "configure",
        "devices",
        "engines",
        "explain",
        "guard",
        "jacobian",
        "jacobians",
        "largest_batch_size",
        "linalg",
        "lint",
        "lite",
        "load_ipython_extension",
        "measure",
        "predict",
        "record",
        "recording",
        "shrink",
        "sweep",
        "training",
        "unload_ipython_extension",
    ]


@pytest.mark.tensorflow  # two of them are subclasses of Keras's
def test_every_public_name_can_be_had():
    for name in snugly.__all__:
        assert getattr(snugly, name) is not None
    assert dir(snugly) == sorted(snugly.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'predcit'"):
        _ = snugly.predcit


def test_importing_snugly_loads_nothing_slow():
    assert not loaded_packages("import snugly") & SLOW


@pytest.mark.parametrize(
    "first",
    ["snugly.record", "snugly.Record", "snugly.recording", "import snugly.recording.record"],
)
def test_record_is_the_function_whatever_was_loaded_first(first):
    # GIVEN a module of the same name in the room THEN it is not taken for the function
    code = f"import snugly\n{first}\nassert callable(snugly.record), snugly.record\n"
    loaded = loaded_packages(f"{code}assert callable(snugly.Record)")
    assert not loaded & {"tensorflow", "keras"}


def test_help_loads_nothing_slow():
    assert not loaded_packages(command("--help")) & SLOW


@pytest.mark.parametrize("words", [["devices"], ["devices", "host"], ["doctor"]])
def test_commands_without_a_program_load_no_tensorflow(words):
    assert not loaded_packages(command(*words)) & {"tensorflow", "keras"}


def test_the_proof_above_can_fail():
    # GIVEN code that does import one of them THEN it is seen
    assert "keras" in loaded_packages("import sys, types; sys.modules['keras.layers'] = types")
    assert "rich" in loaded_packages(command("devices"))
