"""Determinants inside a budget: `slogdet` and `det`.

::

    sign, logabs = snugly.linalg.slogdet("covariance.npy", memory="256MiB")
    d = snugly.linalg.det(a)          # d.mantissa, d.exponent; float(d) where it fits
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.linalg.computing import Settings, compute
from snugly.linalg.files import open_source
from snugly.linalg.result import Determinant, LogDeterminant
from snugly.units import Size

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from snugly.engines import Engine
    from snugly.linalg.computing import Outcome


def slogdet(  # noqa: PLR0913 - the public contract
    a: Any,
    memory: int | str | None = None,
    *,
    overwrite: bool = False,
    scratch: str | os.PathLike[str] | None = None,
    progress: Callable[[float], None] | None = None,
    engine: Engine | None = None,
) -> LogDeterminant:
    """Sign and logarithm of the determinant, with an error bar, in the memory it is given.

    Args:
        a: A tensor, an array, a memory map, or the path of an `.npy` file or a Zarr array; one
        square
            matrix or a stack of them (…, n, n); float16, bfloat16, float32, float64 or complex.
        memory: What may be held beside the matrix: `"256MiB"`, or bytes. None for no limit but the
            machine's.
        overwrite: Whether `a`, an array, may be destroyed; it then serves as working memory.
            Tensors and files never are.
        scratch: Folder for a scratch file, where the budget asks for one. By default the system's
            folder for temporary files.
        progress: Called with the finished share, from 0 to 1. By default long work shows a bar on
            a terminal.
        engine: Where the work runs: `snugly.engines.dask(client)` for the workers of a cluster,
            which then also takes Dask arrays. `memory` is what each worker may hold, and `scratch`
            a folder that all of them see. Results are numbers, also of tensors: they have no
            gradient. By default, this process.

    Returns:
        `sign, logabs`, and `.error`, `.sign_certain`, `.method`, `.reason`, `.peak`.

    Raises:
        InputError: No square matrix, not finite, or no method fits the budget: the message says
            which, and the least that would do.

    Example:
        >>> sign, logabs = slogdet([[2.0, 0.0], [0.0, -3.0]])
        >>> float(sign), round(float(logabs), 6)
        (-1.0, 1.791759)
    """
    settings = Settings(_budget(memory), overwrite, scratch, progress)
    if engine is not None:
        return _logarithm(_on(engine, a, settings))
    if _is_tensor(a):
        from snugly.linalg.tensors import slogdet_of_tensor

        return slogdet_of_tensor(a, settings)
    return _logarithm(compute(open_source(a), settings))


def det(  # noqa: PLR0913 - as `slogdet`
    a: Any,
    memory: int | str | None = None,
    *,
    overwrite: bool = False,
    scratch: str | os.PathLike[str] | None = None,
    progress: Callable[[float], None] | None = None,
    engine: Engine | None = None,
) -> Determinant:
    """The determinant as mantissa · 2**exponent, which neither overflows nor underflows.

    Takes what `slogdet` takes. It is not differentiable, and gives numbers, not tensors: inside a
    model use `slogdet`.

    Example:
        >>> d = det([[1.0, 2.0], [3.0, 4.0]])
        >>> float(d)
        -2.0
    """
    settings = Settings(_budget(memory), overwrite, scratch, progress, compiled=False)
    if engine is not None:
        outcome = _on(engine, a, settings)
    else:
        if _is_tensor(a):
            from snugly.linalg.tensors import array_of_tensor

            a, settings = array_of_tensor(a), settings.keeping_input()
        outcome = compute(open_source(a), settings)
    mantissa, exponent = outcome.parts()
    if not outcome.shape:
        mantissa, exponent = mantissa.item(), int(exponent)
    return Determinant(mantissa, exponent, _logarithm(outcome))


def _on(engine: Engine, a: Any, settings: Settings) -> Outcome:
    from snugly.engines.engine import checked
    from snugly.linalg.on_cluster import compute_on

    if _is_tensor(a):
        from snugly.linalg.tensors import array_of_tensor

        a = array_of_tensor(a)
    return compute_on(checked(engine), a, settings.keeping_input())


def _logarithm(outcome: Outcome) -> LogDeterminant:
    parts = (outcome.sign, outcome.logabs, outcome.error, outcome.certain)
    if not outcome.shape:
        parts = tuple(part.item() for part in parts)
    sign, logabs, error, certain = parts
    return LogDeterminant(
        sign,
        logabs,
        error=error,
        sign_certain=certain,
        method=outcome.method,
        reason=outcome.reason,
        peak=outcome.peak,
    )


def _budget(memory: int | str | None) -> Size | None:
    return None if memory is None else Size(memory)


def _is_tensor(a: Any) -> bool:
    """Whether something is TensorFlow's, without importing TensorFlow."""
    return type(a).__module__.partition(".")[0] in ("tensorflow", "keras") and not isinstance(
        a, np.ndarray
    )
