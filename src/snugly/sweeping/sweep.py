"""sweep: predict many configurations at once, each once, here or on the workers of a cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, SupportsIndex

from snugly.engines import this_process
from snugly.engines.engine import checked
from snugly.engines.here import ThisProcess
from snugly.errors import InputError
from snugly.progress import shown
from snugly.sweeping.asking import check_runtime, questions_about, sizes_of
from snugly.sweeping.table import Largest, Refusal, Row, Sweep
from snugly.sweeping.targets import targets_of
from snugly.sweeping.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from snugly.devices import Device
    from snugly.engines import Engine
    from snugly.sweeping.cells import Judged, Question, Searched
    from snugly.sweeping.targets import Target


def sweep(  # noqa: PLR0913 - what can be said of a sweep, all but one by name
    models: Any,
    *,
    batch_sizes: int | Iterable[int] | None = None,
    devices: str | Device | Iterable[str | Device] | None = None,
    memory: str | SupportsIndex | Iterable[str | SupportsIndex] | None = None,
    training: bool = False,
    largest: bool = False,
    runtime: str | None = None,
    dimensions: Mapping[str, int] | None = None,
    allow_code: bool = False,
    engine: Engine | None = None,
    progress: Callable[[float], None] | None = None,
) -> Sweep:
    """Predict models × batch sizes × devices, and say which of them fit.

    ::

        table = snugly.sweep(["a.keras", "train.py:model"], batch_sizes=[8, 32],
                             devices=["t4", "jetson-nano"], training=True)
        print(table)
        fitting = [row for row in table.rows if row.verdict == "fits"]

    Nothing is run. A step is predicted once for all devices of a kind (GPUs, CPUs) and judged
    against what each of them offers. A cell that cannot be predicted is a row with an error.

    Args:
        models: What `snugly.predict` takes, one or many: paths, `script.py:name`, `module:name`,
            models and functions; or a mapping from names for the table to these. On a cluster, text
            only: what it names is loaded by the workers, which must find it under the same path.
        batch_sizes: One or many. Left out, each program must have a batch size of its own; with
            `largest`, there are then no rows.
        devices: Names of the catalogue, `host` and `gpu:0` (of this machine, wherever the work
            runs), or Devices. Not together with `memory`.
        memory: Budgets as sizes, for the machine that predicts. Left out, nothing is judged.
        training: A training step of compiled models, else inference.
        largest: Also look for the largest batch that surely fits, for each model and device: by
            prediction, to within 2 %. `snugly.largest_batch_size` tries it as well.
        runtime: As for `snugly.predict`, of all models.
        dimensions: The sizes of other open dimensions, by name.
        allow_code: Let model files run code that they carry.
        engine: Where it is predicted: `snugly.engines.dask(…)`; by default this process.
        progress: Called with the finished share. By default long work shows a bar on a terminal.

    Raises:
        InputError: There is nothing to do, or nowhere to do it. What is wrong with one model is in
            its rows instead.
    """
    started = time.perf_counter()
    targets = targets_of(devices, memory)
    sizes = sizes_of(batch_sizes, largest=largest)
    if largest and targets[0].budget is None:
        raise InputError(
            "there is no budget to look for the largest batch in",
            code="SNG549",
            hint="give devices=['t4'] or memory='4GiB' (on the command line --device, --memory)",
        )
    check_runtime(runtime)
    where = this_process() if engine is None else checked(engine)
    is_away = not isinstance(where, ThisProcess)
    asked = questions_about(
        models,
        is_away=is_away,
        training=training,
        runtime=runtime,
        dimensions=dimensions or {},
        allow_code=allow_code,
    )
    if is_away:
        where.workers(tensorflow=not all(question.lite for question in asked.values()))
    work = Work(where, asked, targets)
    with shown(_title(asked), progress) as report:
        share = len(sizes) / (len(sizes) + largest)  # a search counts as one batch size
        cells = work.predict(sizes, report, until=share)
        found = work.search(cells, report, since=share) if largest else {}
    places = [(name, target, *work.place(name, target)) for name in asked for target in targets]
    rows = [
        _row(name, size, target, cells[name, kind, size], position)
        for model in asked
        for size in sizes
        for name, target, kind, position in places
        if name == model
    ]
    return Sweep(
        rows=tuple(rows),
        largest=tuple(
            _largest(name, target, found[name, kind], position)
            for name, target, kind, position in places
            if largest
        ),
        training=training,
        engine=where.title,
        predictions=work.predictions,
        elapsed=time.perf_counter() - started,
    )


def _title(asked: Mapping[str, Question]) -> str:
    return (
        f"predicting {len(asked)} models" if len(asked) > 1 else f"predicting {next(iter(asked))}"
    )


def _row(
    name: str, size: int | None, target: Target, outcome: Judged | Refusal, position: int
) -> Row:
    if isinstance(outcome, Refusal):
        return Row(model=name, batch_size=size, budget=target.budget, error=outcome)
    return Row(
        model=name,
        batch_size=size,
        budget=target.budget,
        found=outcome.found,
        verdict=outcome.verdicts[position],
        reason=outcome.reasons[position],
    )


def _largest(name: str, target: Target, outcome: Searched | Refusal, position: int) -> Largest:
    assert target.budget is not None
    answer = outcome if isinstance(outcome, Refusal) else outcome.found[position]
    if isinstance(answer, Refusal):
        return Largest(model=name, budget=target.budget, error=answer)
    batch, high = answer
    return Largest(model=name, budget=target.budget, batch_size=batch, high=high)
