"""Planning: what to change so that a program fits. Pure: no TensorFlow, no clock, no files."""
