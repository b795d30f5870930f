"""Graph → schedule → timeline → Prediction, with a range and a verdict."""

from snugly.predicting.predict import predict
from snugly.predicting.prediction import Prediction

__all__ = ["Prediction", "predict"]
