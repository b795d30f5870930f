"""Every message code Snugly can print, with what it means and what to do.

One registry, so that each code is used once, tested once, and has one page in the documentation
(`docs/messages/`, written from here). The hundreds tell where a message comes from, and each
family has a file:

    SNG0xx  command    how the command was called, its settings, the installation
    SNG1xx  programs   reading a program and predicting its memory
    SNG2xx  devices    devices and budgets
    SNG3xx  records    recording a run, reading a record
            leaks      what grows while a program runs
    SNG4xx  linting    what `snugly lint` finds in source code; two files, `linting_*`
    SNG5xx  linalg     determinants
            jacobians  Jacobians, from SNG520
            lite       .tflite files and their arenas, from SNG560
            lite_shrink  smaller .tflite files, from SNG566
            lite_patches  rewriting .tflite files: patches, input size, from SNG575
            compression  pruned models and distillation, from SNG530
            training   recomputation in the backward pass, from SNG540
            detection  input pipelines, GPU settings, detection configurations, from SNG550
            engines    work on the workers of a cluster, from SNG580
            packing    offsets for buffers that share memory, from SNG590
    SNG6xx  guarding   running under a limit
    SNG7xx  causes     what a log, an exit code or an exception means, by `snugly explain`;
                       one file a family, `causes_*`
    SNG9xx  machine    hazards of this machine, reported by `snugly doctor`
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from snugly.codes import (
    causes,
    command,
    compression,
    detection,
    devices,
    engines,
    guarding,
    jacobians,
    leaks,
    linalg,
    linting,
    lite,
    lite_patches,
    lite_shrink,
    machine,
    packing,
    programs,
    records,
    training,
)
from snugly.codes.code import Code

__all__ = ["REGISTRY", "Code"]

_ALL: Final = (
    *command.CODES,
    *programs.CODES,
    *devices.CODES,
    *records.CODES,
    *leaks.CODES,
    *linting.CODES,
    *linalg.CODES,
    *jacobians.CODES,
    *lite.CODES,
    *lite_shrink.CODES,
    *lite_patches.CODES,
    *compression.CODES,
    *training.CODES,
    *detection.CODES,
    *engines.CODES,
    *packing.CODES,
    *guarding.CODES,
    *causes.CODES,
    *machine.CODES,
)

REGISTRY: Final = MappingProxyType({entry.code: entry for entry in _ALL})
"""All codes, in order. The documentation and its test read this."""
