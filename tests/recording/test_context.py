"""`with snugly.record()`: what it sees of a process that is already running."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

import snugly
from snugly.errors import InputError
from snugly.recording.file import read_record

pytestmark = pytest.mark.tensorflow


def in_fresh_process(text: str, **environment: str):
    """Run code in a process of its own; what it prints as JSON in its last line."""
    import os

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_weights_from_before_the_block_are_named_and_the_peak_is_the_allocators():
    found = in_fresh_process(
        """
        import json, keras, numpy as np, snugly, tensorflow as tf
        model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, name="wide")])
        model.compile("adam", "mse")
        x, y = np.zeros((8, 64), "float32"), np.zeros((8, 256), "float32")
        model.train_on_batch(x, y)
        kept = tf.ones((100, 100))
        with snugly.record() as r:
            model.train_on_batch(x, y)
        print(json.dumps({
            "peak": int(r.peak),
            "true": tf.config.experimental.get_memory_info("CPU:0")["peak"],
            "parts": {kind: int(size) for kind, size in r.parts.items()},
            "requested": int(r.requested),
            "names": [[t.op, t.kind, t.layer, int(t.bytes)] for t in r.tensors],
            "layers": sorted(
                {s.origin.layer or "" for s in r.timeline.spans if "wide" in s.operation}
            ),
            "notes": list(r.notes),
        }))
        """,
        TF_CPU_ALLOCATOR_USE_BFC="1",
    )
    assert found["peak"] == found["true"]
    assert sum(found["parts"].values()) == found["requested"]
    assert ["sequential/wide/kernel", "weight", "wide", 65536] in found["names"]
    slots = [row for row in found["names"] if row[1] == "optimizer" and row[3] == 65536]
    assert {row[2] for row in slots} == {"wide"}
    assert len(slots) == 2
    assert [row for row in found["names"] if row[1] == "input" and row[3] == 40000]
    # Traced before anybody watched, activations and gradients know their layer by its name alone.
    assert found["layers"] == ["wide"]
    assert found["parts"].get("unknown", 0) < 0.01 * found["requested"]
    assert found["notes"] == []


def test_where_small_tensors_cannot_be_seen_the_record_says_so():
    found = in_fresh_process(
        """
        import json, snugly, tensorflow as tf
        tf.ones((4,))
        with snugly.record() as r:
            a = tf.ones((512, 512)) @ tf.ones((512, 512))
        print(json.dumps({"peak": int(r.peak), "notes": list(r.notes)}))
        """,
        TF_CPU_ALLOCATOR_USE_BFC="",
    )
    assert found["peak"] >= 2 * 512 * 512 * 4
    assert any("256 KiB" in note for note in found["notes"])


def test_where_nothing_is_counted_the_peak_is_what_the_process_grew_by_and_that_is_said():
    found = in_fresh_process(
        """
        import json, snugly, tensorflow as tf
        tf.ones(1)  # TensorFlow is at work before, with an allocator that keeps no figures
        with snugly.record() as r:
            tf.ones((64, 1 << 18))  # 64 MiB, freed again
        print(json.dumps([r.peak, list(r.notes)]))
        """,
        TF_ENABLE_ONEDNN_OPTS="0",
    )
    peak, notes = found
    # Linux counts resident pages in batches, so that some hundred KiB may be missing; above, there
    # is the code that runs for the first time.
    assert 63 << 20 <= peak < 160 << 20
    assert any("by how much the process grew" in note for note in notes)


def test_an_error_inside_the_block_passes_and_the_record_is_there(tmp_path):
    path = tmp_path / "run.snugly"
    with pytest.raises(ZeroDivisionError), snugly.record(path):
        1 / 0  # noqa: B018 - fails on purpose
    assert read_record(path).facts["complete"]


def test_tensorflow_is_put_back_as_it_was(tmp_path):
    import keras
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.framework import func_graph
    from tensorflow.python.ops import resource_variable_ops
    from tensorflow.python.profiler.internal import _pywrap_profiler

    def seen():
        return (
            pywrap_tfe.TFE_Py_FastPathExecute,
            pywrap_tfe.TFE_Py_Execute,
            func_graph.func_graph_from_py_func,
            resource_variable_ops.BaseResourceVariable.__init__,
            _pywrap_profiler.ProfilerSession,
            vars(keras.layers.Layer)["__new__"],
            vars(keras.layers.Layer)["add_weight"],
        )

    before = seen()
    with snugly.record(tmp_path / "run.snugly"):
        assert seen() != before
    assert seen() == before


def test_a_second_recording_inside_is_refused_and_leaves_the_first_alone():
    with snugly.record() as outer:
        with pytest.raises(InputError, match="already"), snugly.record():
            pass
        with pytest.raises(InputError, match="not finished"):
            _ = outer.peak
    assert outer.record.facts["complete"]


def test_a_file_that_cannot_be_written_is_refused_before_the_block(tmp_path):
    with pytest.raises(InputError) as caught, snugly.record(tmp_path / "missing" / "x.snugly"):
        pytest.fail("the block was entered")
    assert caught.value.code == "SNG304"
