"""How the command was called, its settings, the installation: SNG0xx."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG001",
        "Snugly itself failed",
        "Something happened that Snugly did not expect. This is a defect in Snugly.",
        "Run the command again with `--debug` and report what it prints, together with the output"
        " of `snugly doctor`.",
    ),
    Code(
        "SNG002",
        "The command was called wrongly",
        "An argument is missing, unknown, or cannot be combined with another.",
        "`snugly COMMAND --help` lists the arguments and shows examples.",
    ),
    Code(
        "SNG003",
        "A setting cannot be used",
        "A key under `[tool.snugly]` in pyproject.toml, or a `SNUGLY_*` variable, is unknown or has"
        " a value that cannot be read.",
        "Correct or remove the setting that the message names. Known settings are `memory`,"
        " `device`, `output-format` and the table `lint`.",
    ),
    Code(
        "SNG004",
        "A size cannot be read",
        "A size of memory was given in a form that could mean nothing, or two things.",
        "Write `512MiB` (1024-based), `2 GB` (1000-based), or a whole number of bytes.",
    ),
    Code(
        "SNG005",
        "A package is missing",
        "The command needs a package that is not installed, most often TensorFlow. Snugly does not"
        " bring TensorFlow along, because many people already have a build of it.",
        "Install it: `pip install 'snugly[tensorflow]'`.",
    ),
)
