"""Training that is spread over several processes → the prediction of each kind of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError, UnpredictableProgramError
from snugly.predicting.distribution import COLLECTIVE, Distribution, Share, exchange_of
from snugly.predicting.lite import is_tflite
from snugly.predicting.readings import predict_reading
from snugly.predicting.servers import (
    is_remote,
    part_of_server,
    part_of_worker,
    served_bytes,
    waiting_bytes,
)
from snugly.predicting.spread import Margins
from snugly.predicting.strategies import CODE
from snugly.readers.replicas import ON_SERVER, Exchange, as_one_of, marking_servers
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from snugly.devices import Budget
    from snugly.predicting.prediction import Prediction
    from snugly.predicting.strategies import Strategy
    from snugly.readers.read import Reading

# Beyond what a step alone is not known by: when the pieces of others arrive, and how variables that
# were broadcast come to lie in the allocator. docs/distributed.md shows how often it held.
EXCHANGING = Margins(0.05, 0.07)
# A server is kept busy by several workers, so more of an update is in flight at once than where one
# worker is served: of 15 servers measured, one came within a tenth of the upper end without this.
SERVING = Margins(0.05, 0.20)
LEAST_CHUNK = 256  # bytes; kMinAllocationSize, xla/tsl/framework/bfc_allocator.h, TF 2.21
COMPILED = (
    "XLA compiles the step where Keras decides so, as it does on GPUs; it is predicted op by op"
    " instead, so the range is wider; if yours is not compiled, say jit_compile=False"
)
NCCL = (
    "NCCL, which exchanges the gradients, keeps buffers of its own on each GPU beside what is"
    " predicted, and how much is not known"
)
GRPC = (
    "what gRPC holds while it sends and receives is host memory beside what is predicted, and how"
    " much is not known"
)
UNORDERED = (
    "which variables a parameter server gets follows from the order in which they are made, known"
    " only of a built model given as an object; the range of each server holds any order"
)
SERVERS = (
    "a parameter server's range goes from one worker at a time to all workers at once; its best"
    " estimate is all at once"
)


def check_distributed(
    program: Any, example: tuple[Any, ...], batch_size: int | None, *, training: bool
) -> None:
    """Refuse what has nothing to spread, before anything slow is done."""
    if is_tflite(program):
        raise InputError(
            "a .tflite file does not train, so there is nothing to spread",
            code=CODE,
            hint="leave the strategy out",
        )
    if not training:
        raise InputError(
            "a strategy spreads training, and inference was asked for",
            code=CODE,
            hint="say training=True (on the command line --train), or leave the strategy out",
        )
    if batch_size is None:
        raise InputError(
            "how many examples a replica gets is known only from the batch size",
            code=CODE,
            hint="give batch_size=64 (on the command line --batch-size 64), for all replicas"
            " together",
        )
    for shape in _shapes(example):
        if shape[0] is not None:
            raise InputError(
                f"an example of shape {shape} leaves no batch to divide among replicas",
                code=CODE,
                hint="leave its first dimension open: tf.TensorSpec((None, …)), and give"
                " batch_size=64 for all replicas together",
            )


def _shapes(example: Any) -> Iterator[tuple[Any, ...]]:
    """The shapes of everything in a nested structure that has one, and is not a single number."""
    shape = getattr(example, "shape", None)
    if shape is not None:
        if getattr(shape, "rank", len(shape)):
            yield tuple(shape)
    elif isinstance(example, Mapping):
        for part in example.values():
            yield from _shapes(part)
    elif isinstance(example, (list, tuple)):
        for part in example:
            yield from _shapes(part)


def check_compiled(jit_compile: bool | None, runtime: str | None) -> bool:
    """Whether XLA was ruled out, or nobody said; an error where it was asked for."""
    if jit_compile or (jit_compile is None and runtime == "xla"):
        raise InputError(
            "what XLA makes of an exchange of gradients cannot be predicted",
            code=CODE,
            hint="leave jit_compile=True (on the command line --runtime xla) or the strategy out",
        )
    return jit_compile is False or runtime == "tensorflow"


def predict_distributed(  # noqa: PLR0913 - what is asked, and of which machine
    read: Callable[[int], Reading],
    batch_size: int,
    budget: Budget | None,
    strategy: Strategy,
    *,
    on_gpu: bool,
    compiled: bool,
    order: Sequence[str] | None = None,
) -> Prediction:
    """One replica with its part of the batch, and from it all the others.

    `compiled`: XLA would compile the step. What is read never is, so the range is wider then.
    `order`: the names of the model's variables as they were made, where that is known.
    """
    share = strategy.largest_share(batch_size)
    with _traced(strategy, on_gpu=on_gpu):
        reading = read(share)
    reading.compiled_elsewhere = compiled
    _refuse_without_exchange(reading, strategy)
    if strategy.kind == "parameter-server":
        prediction, servers = _with_servers(reading, budget, strategy, order)
    else:
        prediction, servers = _exchanging(reading, budget), ()
    replica = Share(prediction.peak, prediction.low, prediction.high)
    distribution = Distribution(
        strategy=strategy,
        batch_size=batch_size,
        batch_size_per_replica=share,
        replica=replica,
        worker=replica.together(strategy.devices, prediction.resident),
        exchange=exchange_of(reading.graph),
        parameter_servers=servers,
    )
    notes = (*prediction.notes, *_notes(reading, strategy))
    return replace(prediction, distribution=distribution, notes=notes)


def _traced(strategy: Strategy, *, on_gpu: bool) -> AbstractContextManager[None]:
    if strategy.kind == "parameter-server":
        return marking_servers()
    if strategy.replicas == 1:
        return nullcontext()  # nothing is exchanged (CrossDeviceOps.batch_reduce)
    carried_by = strategy.carried_by(on_gpu=on_gpu)
    return as_one_of(Exchange(strategy.replicas, strategy.bytes_per_pack, carried_by))


def _refuse_without_exchange(reading: Reading, strategy: Strategy) -> None:
    """A step that exchanges nothing does not train together: some loop that nobody has seen."""
    operations = reading.graph.operations
    if strategy.kind == "parameter-server":
        found = any(is_remote(operation, ON_SERVER) for operation in operations)
    else:
        found = any(operation.type == COLLECTIVE for operation in operations)
    if strategy.replicas > 1 and not found:
        raise UnpredictableProgramError(
            f"{reading.name}: its step leaves no gradients to an optimizer of Keras, so what"
            " replicas would exchange is not known",
            hint="give a compiled Keras model whose train_step calls optimizer.apply",
        )


def _exchanging(reading: Reading, budget: Budget | None) -> Prediction:
    prediction = predict_reading(reading, budget)
    return replace(
        prediction,
        low=prediction.low.times(1 - EXCHANGING.below),
        high=prediction.high.times(1 + EXCHANGING.above),
    )


def _with_servers(
    reading: Reading, budget: Budget | None, strategy: Strategy, order: Sequence[str] | None
) -> tuple[Prediction, tuple[Share, ...]]:
    """A worker, whose gradients may all have to wait for the network; and each server."""
    graph = reading.graph
    worker = predict_reading(replace(reading, graph=part_of_worker(graph, ON_SERVER)), budget)
    worker = replace(
        worker, high=worker.high.times(1 + EXCHANGING.above) + waiting_bytes(graph, ON_SERVER)
    )

    def served_by(index: int, servers: int) -> Share:
        part = part_of_server(graph, ON_SERVER, index, servers, order or ())
        # Variables are on the servers' CPUs, whatever the workers train on.
        alone = predict_reading(replace(reading, graph=part, on_gpu=False))
        # However small a variable, what its update makes takes a chunk each.
        scattered = len(part.operations) * LEAST_CHUNK
        return _serving(alone, served_bytes(part), scattered, strategy.workers)

    count = strategy.servers
    if order is None and count > 1:
        everything = served_by(0, 1)
        anything = Share(everything.peak.times(1 / count), Size(0), everything.high)
        worker = replace(worker, notes=(*worker.notes, UNORDERED))
        return worker, (anything,) * count
    return worker, tuple(served_by(index, count) for index in range(count))


def _serving(alone: Prediction, served: int, scattered: int, workers: int) -> Share:
    """Workers come when they come: one at a time at best, all at once at worst.

    At worst, too, each of the others still fetches weights that were updated in the meantime.
    """
    resident, others = int(alone.resident), workers - 1
    high = alone.high + others * (max(0, int(alone.high) - resident) + served)
    return Share(
        alone.peak + others * max(0, int(alone.peak) - resident),
        alone.low.times(1 - SERVING.below),
        high.times(1 + SERVING.above) + workers * scattered,
    )


def _notes(reading: Reading, strategy: Strategy) -> list[str]:
    notes: list[str] = []
    if reading.compiled_elsewhere:
        notes.append(COMPILED)
    if strategy.kind == "parameter-server":
        notes.append(SERVERS)
    elif reading.on_gpu and strategy.carried_by(on_gpu=True) == "nccl":
        notes.append(NCCL)
    if strategy.workers > 1:
        notes.append(GRPC)
    return notes
