"""`.tflite` files: read with every offset checked, without TensorFlow."""

from snugly.readers.tflite.model import LiteModel, LiteOperator, LiteSubgraph, LiteTensor
from snugly.readers.tflite.read import read_tflite

__all__ = ["LiteModel", "LiteOperator", "LiteSubgraph", "LiteTensor", "read_tflite"]
