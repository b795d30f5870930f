"""Running under a limit: SNG6xx."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG601",
        "The memory limit was exceeded",
        "A guarded computation asked for more memory than its limit allows and was refused.",
        "Raise the limit, or make the computation smaller; the process can go on.",
    ),
)
