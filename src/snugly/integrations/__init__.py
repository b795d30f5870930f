"""Snugly where people already are: Keras's callbacks, notebooks, pytest, TensorBoard."""
