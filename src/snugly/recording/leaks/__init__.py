"""Leaks: the kind and the line of what grows in a TensorFlow program, else silence."""

from snugly.recording.leaks.leak import Leak, leaks_data
from snugly.recording.leaks.watching import LeakWatch, watch

__all__ = ["Leak", "LeakWatch", "leaks_data", "watch"]
