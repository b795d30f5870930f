"""Tensors in time: births, deaths, live sets, the peak."""

from snugly.timeline.model import LiveTensor, Span, Timeline, parts_of

__all__ = ["LiveTensor", "Span", "Timeline", "parts_of"]
