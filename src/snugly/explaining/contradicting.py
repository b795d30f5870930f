"""Clues that speak against what a message alone would mean, above all against memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from snugly.explaining.lines import printable
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.explaining.matching import Matches
    from snugly.explaining.numbers import Numbers
    from snugly.explaining.rank import Candidate

_OF_NO_GPU: Final = frozenset({"SNG757", "SNG759"})
"""Codes that, as notices, say that the processor is used in place of a GPU."""

_STARTING: Final = frozenset({"SNG710", "SNG711"})
_ROOM_TO_START: Final = Size(1024**3)
"""More than a context (0.3 to 0.5 GiB, SNG705) with what cuDNN and cuBLAS take at their start."""

_MAPPED: Final = re.compile(
    r"\bmmap|\bmemmap|\bmmap_mode\b|\bMAP_SHARED\b|\.(?:safetensors|gguf)\b"
    r"|\bNFS\b|/nfs/|[Ss]tale file handle"
)
"""Files that programs map into memory, and a file system whose files go away under them."""
_SHARED: Final = re.compile(r"\bshm\b|[Ss]hared memory|[Dd]ata ?[Ll]oader", re.IGNORECASE)


def without_contradicted(candidates: Sequence[Candidate], matches: Matches) -> list[Candidate]:
    """Candidates without the notices that a GPU is not used, where the log shows that one is."""
    if not matches.uses_gpu:
        return list(candidates)
    return [one for one in candidates if one.role != "notice" or one.code not in _OF_NO_GPU]


def by_free_memory(candidates: Sequence[Candidate], numbers: Numbers) -> list[Candidate]:
    """What is left where the log says how much of the card was free when a library did not start.

    With room on it, memory is not to blame. On a full one the driver is not, at which TensorFlow
    guesses wherever cuDNN is not initialised.
    """
    free = numbers.card_free
    if free is None:
        return list(candidates)
    starting = [one for one in candidates if one.code in _STARTING and one.role == "consequence"]
    if free < _ROOM_TO_START:
        return [
            one
            for one in candidates
            if not starting or one.code != "SNG756" or one.role != "consequence"
        ]
    for candidate in starting:
        candidate.is_memory = False
        candidate.notes.append(
            f"But {free} were free on the card, which is more than it needs: the versions of"
            " cuDNN, CUDA and the driver come first here."
        )
    return list(candidates)


def by_mapped_files(candidates: Sequence[Candidate], matches: Matches) -> None:
    """Take memory's blame from a bus error, where a file was mapped and nothing was shared."""
    bus = [one for one in candidates if one.code == "SNG795"]
    if not bus or any(_SHARED.search(line.text) for line in matches.tail):
        return
    mapped = [line for line in matches.tail if _MAPPED.search(line.text)]
    for candidate in bus if mapped else ():
        candidate.is_memory = False
        candidate.evidence.append(f"line {mapped[-1].number}: {printable(mapped[-1].text)}")
        candidate.notes.append(
            "A file that programs map into memory was in use: if it became shorter, or its file"
            " system went away, touching it ends so."
        )
