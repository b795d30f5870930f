"""Predicted against measured allocator peaks, in fresh processes."""
