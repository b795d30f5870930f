"""A search with a process of its own for each trial."""

import subprocess
import sys

import tensorflow as tf

results = []
for trial in range(10):
    child = [sys.executable, "-c", f"print({trial} / 2)"]
    run = subprocess.run(child, capture_output=True, check=True)
    results.append(float(run.stdout))
best = tf.reduce_max(tf.constant(results))
