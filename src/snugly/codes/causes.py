"""What a log, an exit code or an exception means, as `snugly explain` says it: SNG7xx.

One code a cause. How each is recognised stands in `snugly.explaining.catalogue`; whether it is a
matter of memory at all stands there too, because that is what people get wrong most.

    SNG700–717  causes_memory    TensorFlow and its GPU ran out of memory
    SNG718–735  causes_system    the computer, its kernel, its container ran out, or refused
    SNG736–749  causes_limits    something else ran out: files, threads, 2 GB, disk
    SNG750–766  causes_cuda      CUDA, cuDNN, driver and card; not memory
    SNG767–787  causes_programs  the program, its data, its installation; not memory
    SNG788–792  causes_lite      LiteRT and TFLite Micro
    SNG793–799  causes_ends      how a process ended, where nothing says why
"""

from __future__ import annotations

from typing import Final

from snugly.codes import (
    causes_cuda,
    causes_ends,
    causes_limits,
    causes_lite,
    causes_memory,
    causes_programs,
    causes_system,
)

CODES: Final = (
    *causes_memory.CODES,
    *causes_system.CODES,
    *causes_limits.CODES,
    *causes_cuda.CODES,
    *causes_programs.CODES,
    *causes_lite.CODES,
    *causes_ends.CODES,
)
