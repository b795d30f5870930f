"""Recording a run and reading a record: SNG30x."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG301",
        "The record cannot be read",
        "The file is not a record, is damaged, or ends before its first complete part.",
        "Record the run again: `snugly profile -o run.snugly SCRIPT`.",
    ),
    Code(
        "SNG302",
        "The record is of a newer version",
        "The file was written by a later version of Snugly, in a form this one does not know.",
        "Update Snugly: `pip install --upgrade snugly`.",
    ),
    Code(
        "SNG303",
        "The script cannot be run",
        "What is to be recorded does not exist, or is not Python.",
        "Give a Python script and its arguments: `snugly profile train.py --epochs 3`.",
    ),
    Code(
        "SNG304",
        "There is no room for the output",
        "The file cannot be written: the folder does not exist, is read-only, or is full.",
        "Give another place: `-o FOLDER/run.snugly`.",
    ),
    Code(
        "SNG305",
        "The trace has no memory events",
        "The profiler's file was read, but no allocator reported anything in it. On a CPU that is"
        " so unless `TF_CPU_ALLOCATOR_USE_BFC=1` was set before TensorFlow was imported; on a GPU,"
        " with `TF_GPU_ALLOCATOR=cuda_malloc_async`.",
        "Record it with `snugly profile SCRIPT`, which sets what is needed.",
    ),
    Code(
        "SNG306",
        "The program cannot be carried into a fresh process",
        "A model or function is measured in a process of its own, and this one cannot be sent"
        " there.",
        'Measure it here: `with snugly.record("run.snugly"): …`, or name it as'
        ' `snugly.measure("script.py:name")`.',
    ),
    Code(
        "SNG307",
        "The program failed while it was measured",
        "The model or function raised an error of its own, or its process died.",
        "Run it by itself first; the message has its last words.",
    ),
)
