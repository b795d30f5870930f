"""Variables that have a size but no memory."""

import resource
import subprocess
import sys

import pytest
import tensorflow as tf

from snugly.readers.phantom import phantom_variable

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(
    "kind", [tf.float32, tf.float16, tf.bfloat16, tf.int64, tf.bool, tf.uint8, tf.complex128]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 5), (4, 5, 6)])
def test_a_phantom_has_type_and_shape(kind, shape):
    phantom = phantom_variable(kind.as_datatype_enum, shape)
    assert phantom.dtype == kind
    assert tuple(phantom.shape) == shape


def test_forty_gigabytes_cost_nothing():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    phantoms = [phantom_variable(tf.float32.as_datatype_enum, (100_000, 50_000)) for _ in range(2)]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert sum(phantom.shape.num_elements() * 4 for phantom in phantoms) == 40_000_000_000
    assert grown < 50_000  # KiB


DROPPING = """
import gc
import tensorflow as tf
from snugly.readers.phantom import phantom_variable

kept = [phantom_variable(tf.float32.as_datatype_enum, (size, 3)) for size in range(1, 200)]
del kept[::2]
gc.collect()
kept.append(phantom_variable(tf.float32.as_datatype_enum, (100_000,)))
print(len(kept), kept[-1].shape)
"""


def test_phantoms_may_be_dropped_in_any_order():
    # GIVEN a process that drops some phantoms while it runs and the others when it ends
    done = subprocess.run(
        [sys.executable, "-c", DROPPING], capture_output=True, text=True, check=False, timeout=120
    )
    # THEN TensorFlow, which is told of each, finds nothing that is gone already
    assert (done.returncode, done.stdout) == (0, "100 (100000,)\n"), done.stderr
