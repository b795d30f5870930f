"""Jacobians: SNG52x."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG520",
        "Nothing to differentiate",
        "The function returns None, whole numbers or text, or is to be differentiated by something"
        " that is not made of floating-point numbers. There is no derivative then.",
        "Return floating-point tensors, and give `x` as floats: `tf.cast(x, tf.float32)`.",
    ),
    Code(
        "SNG521",
        "The budget is too small for this Jacobian",
        "The result, and what computing one row or column of it takes, do not fit the memory that"
        " was given; the message says how much would do. Nothing was computed.",
        'Give the least that the message names, or stream the result to disk: `out="j.npy"`.',
    ),
    Code(
        "SNG522",
        "No path from the output to the input",
        "An output does not depend on an input in a way that has a derivative: because it does not"
        " use it, or because of `tf.stop_gradient`, rounding, or a cast to whole numbers between"
        " them. That part of the Jacobian is zero.",
        "Leave that input or output out, or look for the operation that cuts the path.",
    ),
    Code(
        "SNG523",
        "Variables are created inside the function",
        "Each call would make new variables, so there is no one function to differentiate.",
        "Create variables and layers once, outside the function, and use them inside.",
    ),
    Code(
        "SNG524",
        "The file for the result exists",
        "A file is never overwritten unasked. One that was left half way by the same computation is"
        " gone on with; this one is complete, or belongs to another function, input or type.",
        "Choose another name, or give `overwrite=True`.",
    ),
    Code(
        "SNG525",
        "The function mixes examples",
        "With `per_example=True` the output of each example must depend on that example alone. Here"
        " an output was found to change with another example's input, as with batch normalisation"
        " in training mode, so a result of shape (b, m, n) would leave part of the derivative out.",
        "Leave `per_example` out for the whole Jacobian.",
    ),
    Code(
        "SNG526",
        "The Jacobian is not finite",
        "An entry is NaN or infinite; the message says which one is the first. Square roots and"
        " norms at zero, and logarithms, are the usual causes.",
        "Look at the function there: `tf.debugging.enable_check_numerics()`.",
    ),
    Code(
        "SNG527",
        "The result cannot be written",
        "The disk is full, the folder is missing or read-only. What was written so far is kept, and"
        " the same call goes on with it.",
        "Make room, then call again; or name a file elsewhere.",
    ),
    Code(
        "SNG528",
        "A random function cannot be computed in parts",
        "The function draws random numbers. Within one pass they are drawn once, so that all rows"
        " belong to the same function; here several passes would be needed, each with others.",
        "Draw outside and pass the numbers in, or use `tf.random.stateless_…` with a fixed seed.",
    ),
    Code(
        "SNG529",
        "The request for a Jacobian cannot be understood",
        "An option has a value that does not exist, or options contradict one another.",
        "See the documentation of `snugly.jacobian`.",
    ),
)
