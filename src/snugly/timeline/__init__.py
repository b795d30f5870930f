"""Tensors in time: births, deaths, live sets, the peak."""

from snugly.timeline.model import Span, Timeline

__all__ = ["Span", "Timeline"]
