"""Time and memory of a prediction as the graph grows: 1,000, 10,000 and 100,000 operations.

Each in a process of its own, so that its memory is its own. The goal: no worse than n log n, and
100,000 operations in under 60 s and 2 GiB.
"""

import json
import math
import subprocess
import sys

SIZES = (1_000, 10_000, 100_000)

CHILD = """
import json, resource, sys, time
import tensorflow as tf
import snugly

wanted = int(sys.argv[1])


@tf.function
def chain(x):
    # Five operations a turn, and branches that live for a while before they come together.
    old = x
    for turn in range(wanted // 5):
        x = tf.tanh(x @ x) + old * 0.5
        if turn % 8 == 0:
            old = x
    return x


function = chain.get_concrete_function(tf.TensorSpec((64, 64)))
started = time.perf_counter()
prediction = snugly.predict(function)
print(json.dumps({
    "operations": len(function.graph.get_operations()),
    "seconds": time.perf_counter() - started,
    "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "peak": int(prediction.peak),
}))
"""


def main() -> None:
    """Print one line for each size."""
    first = None
    for size in SIZES:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(size)], capture_output=True, text=True, check=True
        )
        answer = json.loads(done.stdout.splitlines()[-1])
        count = answer["operations"]
        per = answer["seconds"] / (count * math.log(count))
        first = first or per
        print(
            f"{count:>7} operations  {answer['seconds']:6.1f} s  "
            f"{answer['memory'] / 2**30:.2f} GiB  n log n × {per / first:.2f}"
        )


if __name__ == "__main__":
    main()
