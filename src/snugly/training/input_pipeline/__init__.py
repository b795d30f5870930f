"""The memory of `tf.data` pipelines: predicted, bounded, and shuffled without holding it.

::

    from snugly.training import input_pipeline

    print(input_pipeline.predict(dataset, sample=8).peak)
    dataset = input_pipeline.bounded(dataset, "1GiB", sample=8).dataset
    records = input_pipeline.full_shuffle(["train.tfrecord"], seed=7)
"""

from __future__ import annotations

from snugly.training.input_pipeline.bounded import Bounded, PlannedChange, bounded, bounded_data
from snugly.training.input_pipeline.full_shuffle import full_shuffle
from snugly.training.input_pipeline.predict import (
    PipelinePrediction,
    StagePrediction,
    pipeline_data,
    predict,
)

__all__ = [
    "Bounded",
    "PipelinePrediction",
    "PlannedChange",
    "StagePrediction",
    "bounded",
    "bounded_data",
    "full_shuffle",
    "pipeline_data",
    "predict",
]
