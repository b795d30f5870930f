"""`snugly.engines.dask`: from a client, or an address, to an engine."""

from __future__ import annotations

import asyncio
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from snugly.engines.cluster import DaskEngine

_PATIENCE: Final = 2
"""Seconds an address has to answer."""
_LATER: Final = 0.5
"""Seconds by which the answer may come later here than where it was waited for."""


def dask(client_or_address: Any, *, patience: float = 30.0) -> DaskEngine:
    """An engine for `engine=`: the workers of a Dask cluster.

    Args:
        client_or_address: A `distributed.Client`, a cluster such as `LocalCluster`, or the address
            of a scheduler: `"tcp://host:8786"`. For the latter two a client is opened, which
            becomes Dask's default, as clients do; `with`, or `.close()`, closes it.
        patience: Seconds to wait for workers where there are none, at the start or half way.

    Raises:
        InputError: Nothing answers at the address (after 2 seconds), or it is none.
        MissingDependencyError: Dask is not installed.

    Example::

        with snugly.engines.dask("tcp://scheduler:8786") as engine:
            sign, logabs = snugly.linalg.slogdet("large.npy", scratch="/shared", engine=engine)
    """
    if not isinstance(patience, (int, float)) or not patience >= 0:
        raise InputError(
            f"patience is a number of seconds, not {patience!r:.80}",
            code="SNG587",
            hint="snugly.engines.dask(client, patience=30)",
        )
    try:
        import distributed
    except ImportError:
        raise MissingDependencyError(
            "a cluster needs Dask, which is not installed", hint="pip install 'snugly[dask]'"
        ) from None
    from snugly.engines.cluster import DaskEngine

    if isinstance(client_or_address, distributed.Client):
        if client_or_address.asynchronous:
            raise InputError(
                "the client is asynchronous, and this call waits for its work",
                code="SNG587",
                hint="give a plain `distributed.Client(address)`",
            )
        if client_or_address.status != "running":
            raise InputError("the client is closed", code="SNG580")
        return DaskEngine(client_or_address, own=False, patience=patience)
    address = getattr(client_or_address, "scheduler_address", client_or_address)
    if not isinstance(address, str) or not address:
        raise InputError(
            f"a {type(client_or_address).__name__} is neither a client nor an address",
            code="SNG587",
            hint="snugly.engines.dask(distributed.Client(…)), or dask('tcp://host:8786')",
        )
    return DaskEngine(_connected(distributed, address), own=True, patience=patience)


def _connected(distributed: Any, address: str) -> Any:
    try:
        _knock(address)
        return distributed.Client(address, timeout=_PATIENCE)
    except Exception as error:  # an address can be wrong in as many ways as there are protocols
        raise InputError(
            f"no Dask scheduler answers at {address!r:.200} (in at most {_PATIENCE} seconds)",
            code="SNG580",
            hint="see that the scheduler runs and that the address is its own"
            f" ({str(error) or type(error).__name__:.200})",
        ) from error


def _knock(address: str) -> None:
    """See that a scheduler listens: a client that cannot connect goes on trying for minutes."""
    from distributed.comm.core import connect

    async def greet() -> None:
        comm = await asyncio.wait_for(connect(address, timeout=_PATIENCE), _PATIENCE)
        await comm.close()

    def knock() -> None:
        try:
            asyncio.run(greet())
        except BaseException as error:  # noqa: BLE001 - raised again where somebody waits for it
            answers.put(error)
        else:
            answers.put(None)

    if address.startswith("inproc://"):
        return  # those live in this process's own loop
    answers: SimpleQueue[BaseException | None] = SimpleQueue()
    # In a thread: a notebook has a loop running in this one. Nobody waits for its end, because a
    # name that no server resolves holds it for as long as the system asks for the name.
    threading.Thread(target=knock, name="snugly-knock", daemon=True).start()
    try:
        fault = answers.get(timeout=_PATIENCE + _LATER)
    except Empty:
        raise TimeoutError("the name of the machine was not found in time") from None
    if isinstance(fault, MemoryError):  # a greeting of another protocol, read as a length
        raise ConnectionError("what answers there is no Dask scheduler") from fault
    if fault is not None:
        raise fault
