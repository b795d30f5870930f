"""Pictures of discs, squares and triangles, drawn as they are needed, with the box around each.

Every picture follows from its number and the seed, so that two runs see the same. What the detector
is to say of a picture is put together here as well: which anchor holds which shape.
"""

from __future__ import annotations

import tensorflow as tf
from detector import anchors

MOST = 3
"""Shapes in a picture, at most; there is always one."""
HOLDS, HOLDS_NOT = 0.5, 0.4
"""From this overlap on an anchor holds a shape; below the second it is background (Lin et al.)."""


def batches(count: int, batch_size: int, side: int, seed: int = 0) -> tf.data.Dataset:
    """So many batches of pictures and targets, drawn anew in every epoch, one step ahead."""

    def example(number: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        image, boxes, kinds = draw(tf.stack([tf.cast(seed, tf.int64), number]), side)
        return image, targets(boxes, kinds, side)

    numbers = tf.data.Dataset.range(count * batch_size)
    drawn = numbers.map(example, num_parallel_calls=2, deterministic=True)
    return drawn.batch(batch_size, drop_remainder=True).prefetch(1)


def draw(seed: tf.Tensor, side: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """One picture, the boxes in it (centre, height, width in pixels), and what is in each (1–3).

    Pictures wait as bytes: as float32 they would take four times the memory.
    """
    seeds = tf.random.experimental.stateless_split(seed, 5)
    image = 0.1 * tf.random.stateless_normal((side, side, 3), seeds[0])
    kinds = tf.random.stateless_uniform((MOST,), seeds[1], 1, 4, tf.int32)
    kinds = kinds[: tf.random.stateless_uniform((), seeds[1], 1, MOST + 1, tf.int32)]
    radius = tf.random.stateless_uniform((MOST,), seeds[2], 0.1, 0.25) * side
    place = tf.random.stateless_uniform((MOST, 2), seeds[3], 0.25, 0.75) * side
    colour = tf.random.stateless_uniform((MOST, 3), seeds[4], 0.3, 1.0)
    line = tf.range(side, dtype=tf.float32) + 0.5
    for i in range(MOST):
        down, right = line[:, None] - place[i, 0], line[None, :] - place[i, 1]
        inside = tf.stack(
            [
                down**2 + right**2 <= radius[i] ** 2,
                tf.maximum(tf.abs(down), tf.abs(right)) <= radius[i],
                (tf.abs(right) <= (down + radius[i]) / 2) & (down <= radius[i]),
            ]
        )
        drawn = tf.size(kinds) > i
        kind = tf.where(drawn, tf.concat([kinds, tf.ones(MOST, tf.int32)], 0)[i], 1)
        image = tf.where((inside[kind - 1] & drawn)[..., None], colour[i], image)
    boxes = tf.concat([place, 2 * radius[:, None], 2 * radius[:, None]], 1)
    return tf.saturate_cast(255 * image, tf.uint8), boxes[: tf.size(kinds)], kinds


def targets(boxes: tf.Tensor, kinds: tf.Tensor, side: int) -> dict[str, tf.Tensor]:
    """What the two outputs are compared with, for every anchor."""
    places = tf.constant(anchors(side))
    overlap = _overlap(places, boxes)
    best = tf.argmax(overlap, 1)
    most = tf.reduce_max(overlap, 1)
    # The anchor that overlaps a shape most holds it in any case.
    nearest = tf.reduce_max(tf.one_hot(tf.argmax(overlap, 0), len(places), axis=0), 1) > 0
    holds = nearest | (most >= HOLDS)
    label = tf.where(holds, tf.gather(kinds, best), tf.where(most < HOLDS_NOT, 0, -1))
    box = tf.gather(boxes, best)
    offset = (box[:, :2] - places[:, :2]) / places[:, 2:] / 0.1
    stretch = tf.math.log(box[:, 2:] / places[:, 2:]) / 0.2
    held = tf.cast(holds, tf.float32)[:, None]
    return {
        "boxes": tf.concat([offset * held, stretch * held, held], 1),
        "classes": tf.cast(label, tf.float32),
    }


def _overlap(places: tf.Tensor, boxes: tf.Tensor) -> tf.Tensor:
    """Intersection over union of every anchor with every box."""
    low = tf.maximum(_low(places)[:, None], _low(boxes)[None])
    high = tf.minimum(_low(places)[:, None] + places[:, None, 2:], _low(boxes) + boxes[:, 2:])
    common = tf.reduce_prod(tf.maximum(high - low, 0.0), -1)
    of_place = tf.reduce_prod(places[:, 2:], 1)[:, None]
    return common / (of_place + tf.reduce_prod(boxes[:, 2:], 1) - common)


def _low(boxes: tf.Tensor) -> tf.Tensor:
    return boxes[:, :2] - boxes[:, 2:] / 2
