"""Packing buffers into one block of memory: SNG59x."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG590",
        "The buffers cannot be read",
        "`snugly pack` reads a table with the columns id, lower, upper and size: whole numbers,"
        " sizes not negative, each buffer ending after it begins, no id twice.",
        "Mend the line that is named.",
    ),
    Code(
        "SNG591",
        "More is live at once than the capacity",
        "At some moment the buffers that are live need more bytes than the capacity, so no"
        " arrangement can fit.",
        "Give a capacity of at least the bytes that are named, or shorten or shrink buffers.",
    ),
    Code(
        "SNG592",
        "No packing fits the capacity",
        "The live bytes would fit at every moment, but every arrangement leaves gaps, or the"
        " alignment makes them: that none fits is proven.",
        "Leave `--capacity` out to find the lowest packing.",
    ),
    Code(
        "SNG593",
        "No packing was found",
        "The time limit came before a packing that fits was found, or the proof that there is"
        " none; or more than 2,000 buffers hang together, which are packed by greedy rules only.",
        "Give more time with `--time-limit`, or a larger capacity.",
    ),
    Code(
        "SNG594",
        "There are too many buffers",
        "The file is larger than `snugly pack` reads, so that it cannot fill the memory of the"
        " machine it runs on.",
        "Join buffers that begin and end together, or pack the parts of the program apart.",
    ),
)
