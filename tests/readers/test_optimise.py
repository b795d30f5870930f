"""What Grappler and TensorFlow's shape functions may not do to us."""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.tensorflow

# An input far larger than any machine: Grappler fills every placeholder with zeros unless told
# that it is an argument.
LARGE_INPUT = """
    import tensorflow as tf
    import snugly
    total = tf.function(lambda x: tf.reduce_sum(x, 0))
    said = snugly.predict(total, tf.TensorSpec((1 << 20, 1 << 18)))
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(int(said.peak), int(peak.split()[1]) * 1024)
"""

# The gradient adds lists, which TensorFlow's shape function for AddN does not survive.
SUM_OF_LISTS = """
    import tensorflow as tf
    import snugly

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            rows = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)
            total = tf.zeros(8)
            for index in tf.range(4):
                total = tf.sin(total + rows.read(index) * rows.read(0))
            total = total + rows.read(1)
        return tape.gradient(total, x)

    print(int(snugly.predict(gradient, tf.TensorSpec((4, 8))).peak))
"""


def run(code: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [int(word) for word in done.stdout.split()]


def test_an_input_is_not_allocated_to_predict_it():
    # GIVEN an input of 1 TiB, WHEN a function of it is predicted
    peak, memory = run(LARGE_INPUT)
    # THEN the answer is at least that, and the process stayed under 1.3 GiB
    assert peak >= 1 << 40
    assert memory < 1.3 * (1 << 30)


def test_the_gradient_of_a_list_that_is_read_twice_can_be_predicted(tmp_path):
    # AutoGraph reads the source, so the program is a file
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(SUM_OF_LISTS))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=120
    )
    assert int(done.stdout) >= 4 * 8 * 4
