"""Any program → Graph: what a TensorFlow program would do, found out without running it."""
