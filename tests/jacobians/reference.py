"""What a Jacobian should be: row by row from `tape.gradient`, and by finite differences."""

import numpy as np
import tensorflow as tf


def by_rows(f, x, source=None):
    """Each row by a gradient of its own: slow, and nothing that could go wrong in it."""
    source = x if source is None else source
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(source)
        y = tf.reshape(f(x), (-1,))
        entries = tf.unstack(y)
    rows = []
    for entry in entries:
        gradient = tape.gradient(entry, source)
        rows.append(
            np.zeros(source.shape) if gradient is None else tf.convert_to_tensor(gradient).numpy()
        )
    return np.stack(rows).reshape((*f(x).shape, *source.shape))


def by_differences(f, x, step=1e-6):
    """Central differences, in float64."""
    x = np.asarray(x, np.float64)
    columns = []
    for place in range(x.size):
        shift = np.zeros(x.size)
        shift[place] = step
        shift = shift.reshape(x.shape)
        up, down = f(tf.constant(x + shift)).numpy(), f(tf.constant(x - shift)).numpy()
        columns.append((up - down).reshape(-1) / (2 * step))
    return np.stack(columns, axis=1)
