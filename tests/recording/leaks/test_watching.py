"""A watch leaves a process as it found it, and keeps nothing of the program's alive."""

import gc
import subprocess
import sys
import textwrap
import weakref

import pytest

from snugly.codes import REGISTRY
from snugly.recording.leaks import Leak, LeakWatch, leaks_data, watch
from snugly.recording.leaks.leak import CODES


def run(text):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, check=True, text=True
    )
    return done.stdout.split()


def test_a_watch_imports_no_tensorflow_and_finds_nothing_without_it():
    assert run("""
        import sys
        from snugly.recording.leaks import watch
        with watch() as watched:
            kept = [bytes(100_000) for _ in range(30)]
        print("tensorflow" in sys.modules, watched.leaks)
    """) == ["False", "[]"]


def test_every_kind_has_a_code_with_a_meaning_and_a_remedy():
    assert len(set(CODES.values())) == len(CODES)
    for code in CODES.values():
        assert REGISTRY[code].meaning
        assert REGISTRY[code].remedy


def test_a_leak_as_data_and_as_a_finding():
    leak = Leak(
        kind="kept-tensors",
        path="train.py",
        line=12,
        bytes_per_iteration=4096,
        iterations=30,
        count=30,
        message="30 tensors are kept",
    )
    (data,) = leaks_data([leak])["leaks"]
    assert {"kind", "path", "line", "bytes_per_iteration"} <= data.keys()
    assert data["code"] == "SNG327"
    finding = leak.to_finding()
    assert (finding.code, finding.path, finding.line) == ("SNG327", "train.py", 12)
    assert finding.evidence == ("30 iterations, 4 KiB an iteration (measured)",)


@pytest.mark.tensorflow
def test_a_leak_in_a_running_process_is_named():
    import tensorflow as tf

    # GIVEN a loop that keeps what it makes
    kept = []
    with watch() as watched:
        for _ in range(30):
            kept.append(tf.random.normal((16, 16)))  # noqa: PERF401 - here
    # THEN it is named, and the next watch begins anew
    assert [(leak.kind, leak.held_by) for leak in watched.leaks] == [("kept-tensors", "kept")]
    assert watched.problems == {}
    with watch() as watched:
        tf.reduce_sum(kept[0])
    assert watched.leaks == []


@pytest.mark.tensorflow
def test_a_watch_puts_everything_back():
    import keras
    import tensorflow as tf
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    places = [
        (pywrap_tfe, "TFE_Py_FastPathExecute"),
        (pywrap_tfe, "TFE_Py_Execute"),
        (polymorphic_function.Function, "__call__"),
        (tf.GradientTape, "__init__"),
        (keras.layers.Layer, "__new__"),
    ]
    before = [getattr(owner, name) for owner, name in places]
    frozen = gc.get_freeze_count()
    with watch():
        assert [getattr(owner, name) for owner, name in places] != before
        tf.ones((3,)) * 2.0
    assert [getattr(owner, name) for owner, name in places] == before
    assert gc.get_freeze_count() == frozen


@pytest.mark.tensorflow
def test_a_watch_keeps_nothing_alive():
    import keras
    import tensorflow as tf

    with watch() as watched:
        model = keras.Sequential([keras.layers.Dense(2)])
        tensor = model(tf.ones((1, 2)))
        references = [weakref.ref(model), weakref.ref(tensor)]
        del model, tensor
        gc.collect()
        assert [reference() for reference in references] == [None, None]
    assert watched.leaks == []


@pytest.mark.tensorflow
def test_an_error_of_the_programs_own_passes_through():
    import tensorflow as tf

    @tf.function
    def fails(values):
        raise KeyError(f"mine: {values.dtype}")

    with watch() as watched, pytest.raises(KeyError, match="mine"):
        fails(tf.ones((2,)))
    assert watched.problems == {}
    assert watched.stop() == []


def test_stopping_twice_is_harmless():
    started = LeakWatch().start()
    assert started.stop() == started.stop()
