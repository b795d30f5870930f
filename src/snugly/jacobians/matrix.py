"""`jacobian`: the derivative of every output by every input, inside a byte budget.

::

    J = snugly.jacobian(f, x, memory="512MiB")
    J = snugly.jacobian(model, x, wrt=model.trainable_variables, out="j.npy", memory="512MiB")
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.engines.engine import checked
from snugly.errors import InputError
from snugly.jacobians import examples
from snugly.jacobians.computing import Filling
from snugly.jacobians.finite import first_not_finite
from snugly.jacobians.known import Known, known
from snugly.jacobians.narrow import narrow_type, rounding_note
from snugly.jacobians.plan import Plan, Request
from snugly.jacobians.settling import settle, with_available
from snugly.jacobians.streaming import Streamed, open_store, opened, stream
from snugly.jacobians.subject import tensorflow, tensors_of
from snugly.progress import shown
from snugly.readers.host_memory import array_of
from snugly.units import Size

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from snugly.engines import Engine

_MODES: Final = ("auto", "reverse", "forward")


class JacobianWarning(UserWarning):
    """Something about a Jacobian that a user should know, and that is also in its `.notes`."""


def jacobian(  # noqa: PLR0913 - the public contract
    f: Any,
    x: Any,
    memory: int | str | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    mode: str = "auto",
    sparsity: Any = None,
    per_example: bool = False,
    wrt: Any = None,
    overwrite: bool = False,
    precision: str | None = None,
    progress: Callable[[float], None] | None = None,
    engine: Engine | None = None,
) -> Any:
    """The Jacobian of a function or Keras model, computed in the memory it is given.

    Args:
        f: A function of `x`, a Keras model or layer. Python's random state and TensorFlow's
            variables are used as they are; random operations draw once for the whole Jacobian.
        x: A tensor or array, or any nest of them, at which the derivative is taken.
        memory: What may be held beside inputs and weights, the result in memory with it:
            `"512MiB"`, or bytes. None for about 1.1 times the result.
        out: A file for the result, `.npy` or `.zarr`; it then takes no memory. A killed run goes
            on where it stopped when it is called again.
        mode: `"reverse"` (by rows), `"forward"` (by columns), or `"auto"`.
        sparsity: `"detect"`, or a pattern (a SciPy sparse matrix or boolean array): the result is
            a SciPy sparse matrix, from a few products.
        per_example: Only each example's own block, shape (b, …, …). Refused if examples mix.
        wrt: Variables to differentiate by, instead of `x`.
        overwrite: Whether `out` may be replaced.
        precision: `"bfloat16"` or `"float16"` to keep the result in; what that costs is measured
            on some rows and reported.
        progress: Called with the finished share. By default long work shows a bar on a terminal.
        engine: Where the work runs: `snugly.engines.dask(client)` for the workers of a cluster.
            `memory` is then what each worker may hold, and the result a lazy Dask array; with
            `out=`, a store on a file system that all workers see.

    Returns:
        A tensor of shape `y.shape + x.shape`, with `.plan`, `.method`, `.reason` and `.notes`; a
        nest of them where `x` or the output is a nest, as `tf.GradientTape.jacobian` gives. With
        `out=`, a memory map of the file (or a `Streamed` Zarr array).

    Raises:
        MemoryLimitExceeded: Before anything is computed; the message names the least that would do.
        InputError: What was asked for cannot be done.

    Example:
        >>> import tensorflow as tf
        >>> jacobian(lambda v: v**2, tf.constant([1.0, 2.0]), memory="1MiB").numpy().tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    _check(mode, sparsity, per_example, wrt)
    if engine is not None:
        _check_engine(engine, sparsity)
    if sparsity is not None:
        from snugly.jacobians.sparse import sparse_jacobian

        return sparse_jacobian(f, x, sparsity, memory, out=out, mode=mode, progress=progress)
    budget = None if memory is None else Size(memory)
    about, leaves = known(f, x, wrt), tensors_of(x)
    narrow = narrow_type(precision, about.subject)
    request = Request(
        budget=budget,
        mode=mode,
        whole=not per_example,
        streamed=out is not None,
        item=0 if narrow is None else narrow.size,
    )
    if engine is not None:
        path = None if out is None else Path(out)
        with shown(f"Jacobian of {about.subject.title}", progress) as report:
            return _elsewhere(engine, about, request, leaves, path, narrow, overwrite, report, wrt)
    request = with_available(request, about)
    plan = settle(about, request, leaves, narrow)
    if out is not None and about.subject.random:
        raise InputError(f"{about.subject.title} draws random numbers", code="SNG528")
    plan = plan.noting(*_unconnected(about, wrt))
    with shown(f"Jacobian of {about.subject.title}", progress) as report:
        if out is not None:
            return _streamed(about, plan, leaves, Path(out), narrow, overwrite, report, request)
        return _in_memory(about, plan, leaves, narrow, report, request)


def plan(  # noqa: PLR0913 - as `jacobian`
    f: Any,
    x: Any,
    memory: int | str | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    mode: str = "auto",
    per_example: bool = False,
    wrt: Any = None,
    precision: str | None = None,
) -> Plan:
    """How `jacobian` would go about it: method, chunk, and the peak it would not exceed.

    Takes what `jacobian` takes. Whether examples mix is found out with a few products where `x` has
    values; with `tf.TensorSpec`s in its place nothing runs, and they are taken to mix.
    """
    tf = tensorflow()
    _check(mode, None, per_example, wrt)
    about = known(f, x, wrt)
    narrow = narrow_type(precision, about.subject)
    request = Request(
        budget=None if memory is None else Size(memory),
        mode=mode,
        whole=not per_example,
        streamed=out is not None,
        item=0 if narrow is None else narrow.size,
    )
    request = with_available(request, about)
    if any(isinstance(leaf, tf.TensorSpec) for leaf in tf.nest.flatten(x)):
        count = examples.require_examples(about.subject) if per_example else 0
        return about.plan(replace(request, examples=count), None, narrow)
    return settle(about, request, tensors_of(x), narrow)


def _in_memory(  # noqa: PLR0913, PLR0917 - what a computation is made of
    about: Known,
    plan: Plan,
    leaves: Sequence[Any],
    narrow: Any,
    report: Callable[[float], None],
    request: Request,
) -> Any:
    tf = tensorflow()
    subject = about.subject
    filling = Filling(about, plan, whole=_whole(plan, request), narrow=narrow)
    found = filling.run(leaves, report)
    if narrow is not None:
        plan = plan.noting(rounding_note(about, plan, leaves, found, narrow))
    if filling.suspect:
        arrays = [array_of(part) for row in found for part in row]
        plan = plan.noting(*_not_finite(arrays))
    _say(plan)
    rows = []
    for row in found:
        for part in row:
            _attach(part, plan)
        rows.append(tf.nest.pack_sequence_as(_inputs(subject), row))
    return tf.nest.pack_sequence_as(_packing(tf, subject.result), rows)


def _streamed(  # noqa: PLR0913, PLR0917 - what a computation is made of
    about: Known,
    plan: Plan,
    leaves: Sequence[Any],
    path: Path,
    narrow: Any,
    overwrite: bool,
    report: Callable[[float], None],
    request: Request,
) -> Any:
    whole = _whole(plan, request)
    examples_apart = plan.portions[0].lines.examples
    store = open_store(path, about.subject, examples=examples_apart, whole=whole, narrow=narrow)
    suspect = stream(
        about,
        plan,
        store,
        leaves,
        whole=whole,
        narrow=narrow,
        overwrite=overwrite,
        progress=report,
    )
    return _finished(opened(store), plan, suspect)


def _finished(result: Any, plan: Plan, suspect: bool) -> Any:
    if suspect and isinstance(result, np.ndarray):
        plan = plan.noting(*_not_finite([result]))
    elif suspect:
        plan = plan.noting("SNG526: some entry is not finite")
    _say(plan, above=4)
    _attach(result, plan)
    return result


def _elsewhere(  # noqa: PLR0913, PLR0917 - what a computation is made of
    engine: Engine,
    about: Known,
    request: Request,
    leaves: Sequence[Any],
    path: Path | None,
    narrow: Any,
    overwrite: bool,
    report: Callable[[float], None],
    wrt: Any,
) -> Any:
    """On the workers of an engine: into a store, or as Dask arrays."""
    from snugly.jacobians.lazy import lazily_on
    from snugly.jacobians.on_cluster import Crew, request_for, stream_on

    crew = Crew(engine, about, request.budget)
    request = request_for(crew, request)
    if path is None:
        plan, rows = lazily_on(crew, about, request, leaves, narrow)
        tf, plan = tensorflow(), plan.noting(*_unconnected(about, wrt))
        _say(plan)
        for row in rows:
            for part in row:
                _attach(part, plan)
        packed = [tf.nest.pack_sequence_as(_inputs(about.subject), row) for row in rows]
        return tf.nest.pack_sequence_as(_packing(tf, about.subject.result), packed)
    plan = crew.plan(lambda: settle(about, request, leaves, narrow))
    plan = plan.noting(*_unconnected(about, wrt))
    store, suspect = stream_on(
        crew,
        about,
        plan,
        leaves,
        path,
        whole=_whole(plan, request),
        narrow=narrow,
        overwrite=overwrite,
        progress=report,
    )
    return _finished(opened(store), plan, suspect)


def _whole(plan: Plan, request: Request) -> bool:
    return request.whole or not plan.portions[0].lines.examples


def _inputs(subject: Any) -> Any:
    return _packing(tensorflow(), subject.structure if subject.wrt is None else subject.wrt)


def _packing(tf: Any, structure: Any) -> Any:
    return tf.nest.map_structure(lambda _: 0, structure)


def _unconnected(about: Known, wrt: Any) -> list[str]:
    subject = about.subject
    every = len(subject.outputs) * len(subject.sources)
    if about.missing and len(about.missing) == every:
        by = "the variables" if wrt is not None else "x"
        return [f"SNG522: nothing of {subject.title} depends on {by}: the Jacobian is zero"]
    return [
        f"SNG522: output {row} has no path to input {column}: that part is zero"
        for row, column in about.missing
    ]


def _not_finite(arrays: Sequence[np.ndarray]) -> list[str]:
    for number, array in enumerate(arrays):
        place = first_not_finite(array)
        if place is not None:
            part = f" of part {number}" if len(arrays) > 1 else ""
            return [f"SNG526: the entry at {place}{part} is {array[place]}"]
    return []


def _say(plan: Plan, above: int = 3) -> None:
    """Warn of the notes at the line that called `jacobian`, so many calls above this one."""
    for note in plan.notes:
        warnings.warn(note, JacobianWarning, stacklevel=above + 1)


def _attach(result: Any, plan: Plan) -> None:
    result.plan, result.method, result.reason = plan, plan.method, plan.reason
    result.notes = plan.notes


def _check(mode: str, sparsity: Any, per_example: bool, wrt: Any) -> None:
    if mode not in _MODES:
        raise InputError(
            f"there is no mode {mode!r}", code="SNG529", hint=f"mode is one of {', '.join(_MODES)}"
        )
    if sparsity is not None and (per_example or wrt is not None):
        raise InputError(
            "sparsity is for the whole Jacobian by x: neither per_example nor wrt go with it",
            code="SNG529",
        )


def _check_engine(engine: Any, sparsity: Any) -> None:
    checked(engine)
    if sparsity is not None:
        raise InputError(
            "a sparse Jacobian takes a few products, and is computed in this process",
            code="SNG587",
            hint="leave `engine` out",
        )


__all__ = ["JacobianWarning", "Streamed", "jacobian", "plan"]
