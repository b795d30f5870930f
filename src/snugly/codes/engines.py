"""Work on the workers of a cluster: SNG58x."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG580",
        "No cluster answers there",
        "Nothing listens at the address that was given, it is no Dask scheduler, or the connection"
        " was lost. Nothing was computed.",
        "Start a scheduler with `dask scheduler`, and give the address it prints:"
        " `snugly.engines.dask('tcp://host:8786')`.",
    ),
    Code(
        "SNG581",
        "The cluster has no workers",
        "The scheduler answers, but no worker has joined it, or all that had are gone.",
        "Start some: `cluster.scale(4)`, or `dask worker tcp://host:8786`.",
    ),
    Code(
        "SNG582",
        "The workers are not set up alike",
        "A worker lacks Snugly or TensorFlow, or has another version than this process. Results"
        " would differ from worker to worker, or fail half way. Nothing was computed.",
        "Install the same packages everywhere: `pip install 'snugly[dask,tensorflow]'`.",
    ),
    Code(
        "SNG583",
        "A worker does not see the folder",
        "Workers read the matrix, and keep factors and results, in files; each must find them under"
        " the same path as this process. On one machine every folder will do; on several it must"
        " lie on a file system they share, and be writable.",
        "Name a shared folder: `scratch=FOLDER` for determinants, `out=` for Jacobians.",
    ),
    Code(
        "SNG584",
        "Workers have too little memory",
        "One block of the work does not fit what a worker has beside its own process; the message"
        " says how much would do. Nothing was computed.",
        "Start workers with the limit that the message names: `dask worker --memory-limit …`.",
    ),
    Code(
        "SNG585",
        "Workers died at the same task",
        "Dask starts a task again elsewhere when its worker dies, and gives up after a few deaths."
        " The system, or Dask's own watch over memory, probably ended them.",
        "Look into the workers' logs. Give fewer bytes to each task with `memory=`, or workers a"
        " higher `--memory-limit`.",
    ),
    Code(
        "SNG586",
        "The function cannot be sent to workers",
        "What is sent is the traced program with the values it holds. Python code inside it"
        " (`tf.py_function`), tables and files that are open here do not exist elsewhere.",
        "Write it with TensorFlow's operations alone, or compute it here: `engine=None`.",
    ),
    Code(
        "SNG587",
        "This engine cannot be used so",
        "What was given as `engine` is no engine, or an option does not go with one.",
        "Give `engine=snugly.engines.dask(client)`, or leave it out.",
    ),
)
