"""Graph → schedule → timeline → Prediction, with a range and a verdict."""

from snugly.predicting.predict import predict
from snugly.predicting.prediction import LiveTensor, Prediction

__all__ = ["LiveTensor", "Prediction", "predict"]
