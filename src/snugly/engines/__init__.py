"""Where bounded work runs: in this process, or on the workers of a Dask cluster.

::

    engine = snugly.engines.dask("tcp://scheduler:8786")
    sign, logabs = snugly.linalg.slogdet("large.npy", scratch="/shared/scratch", engine=engine)

Importing this imports no Dask; connecting to a cluster does.
"""

from snugly.engines.connecting import dask
from snugly.engines.engine import Engine, Task, Worker
from snugly.engines.here import this_process

__all__ = ["Engine", "Task", "Worker", "dask", "this_process"]
