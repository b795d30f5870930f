"""Determinants: SNG5xx."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG501",
        "Not a square matrix",
        "A determinant is that of a square matrix, or of each of a stack of them: the last two"
        " extents of the shape must be equal.",
        "Check the shape. A flat array becomes a matrix with `a.reshape(n, n)`.",
    ),
    Code(
        "SNG502",
        "No floating-point numbers",
        "Determinants are computed in floating point, so whole numbers, booleans and text are not"
        " taken: converting them unasked would hide whether they are exact.",
        "Convert the matrix: `tf.cast(a, tf.float64)`, or `a.astype(numpy.float64)`.",
    ),
    Code(
        "SNG503",
        "The matrix is not finite",
        "An entry is NaN or infinite; the message says which. There is no determinant then, and"
        " TensorFlow would return NaN without a word.",
        "Find out where it comes from: `tf.debugging.enable_check_numerics()`.",
    ),
    Code(
        "SNG504",
        "The matrix cannot be read",
        "The file does not exist, is damaged, shorter than its header says, or neither an .npy file"
        " nor a Zarr array.",
        "Write it with `numpy.save`, or give the path of one Zarr array.",
    ),
    Code(
        "SNG505",
        "No room for the scratch file",
        "The budget is smaller than the matrix, so its factors go to a scratch file; the folder for"
        " it is full, read-only, or missing. Nothing was written, and the matrix is unchanged.",
        "Name a folder with room for it: `slogdet(a, memory=…, scratch=FOLDER)`.",
    ),
    Code(
        "SNG506",
        "The budget is too small for any method",
        "Even square tiles in a scratch file need a few vectors as long as the matrix in memory.",
        "Give the least that the message names, or more: time falls with every doubling.",
    ),
    Code(
        "SNG508",
        "A singular matrix has no gradient",
        "The logarithm of its determinant is minus infinity, and its gradient, the inverse, does"
        " not exist.",
        "Add a multiple of the identity, or leave the matrix out of the loss.",
    ),
)
