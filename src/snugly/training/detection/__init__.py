"""The Object Detection API's pipeline.config: what training by it holds, and how to make it fit.

::

    from snugly.training import detection

    prediction = detection.predict_pipeline_config("pipeline.config")
    print(prediction.host, prediction.most_expensive.setting)

    shrunk = detection.shrink_pipeline_config("pipeline.config", host_memory="8GiB")
    print(shrunk.diff)

The file is read as protobuf text; nothing of the API is needed or run.
"""

from __future__ import annotations

from snugly.training.detection.device_memory import DevicePrediction
from snugly.training.detection.host_memory import Part
from snugly.training.detection.predict import (
    DetectionPrediction,
    detection_data,
    predict_pipeline_config,
)
from snugly.training.detection.shrink import (
    Change,
    ShrunkConfig,
    shrink_pipeline_config,
    shrunk_data,
)
from snugly.training.detection.text_format import parse_text_format

__all__ = [
    "Change",
    "DetectionPrediction",
    "DevicePrediction",
    "Part",
    "ShrunkConfig",
    "detection_data",
    "parse_text_format",
    "predict_pipeline_config",
    "shrink_pipeline_config",
    "shrunk_data",
]
