"""What TensorFlow's kernels do with memory: which input an output shares or takes over, what scratch they need."""

from snugly.readers.kernels.behaviour import Behaviour, behaviour_of

__all__ = ["Behaviour", "behaviour_of"]
