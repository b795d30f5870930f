"""What TensorFlow's kernels do with memory: which buffers they share or take over, their scratch.

The rules were read in TensorFlow's kernels (file names stand beside each) and compared with what
TensorFlow 2.21 allocates; `tests/readers/kernels/test_against_tensorflow.py` compares them again.
They hold for the CPU kernels, oneDNN's and TensorFlow's own.
"""

from snugly.readers.kernels.behaviour import Behaviour, behaviour_of, is_known

__all__ = ["Behaviour", "behaviour_of", "is_known"]
