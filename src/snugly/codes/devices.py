"""Devices and budgets: SNG2xx."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG201",
        "The device is not known",
        "The catalogue has no device of this name.",
        "`snugly devices` lists all names. For a device that is not there, give its memory instead:"
        " `--memory 4GiB`.",
    ),
    Code(
        "SNG202",
        "Two budgets were given",
        "A budget is either a number of bytes or what a device offers, not both.",
        "Give `--memory` or `--device`, not both.",
    ),
    Code(
        "SNG203",
        "No such GPU on this machine",
        "The GPU that was asked for is not visible through NVIDIA's management library.",
        "`snugly devices host` shows what is visible. Check the driver with `nvidia-smi`.",
    ),
)
