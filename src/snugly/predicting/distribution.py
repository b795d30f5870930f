"""What training costs every process when it is spread over several: replicas, workers, servers.

A replica is predicted like any other program, from a graph that holds the exchange of gradients
too. What is counted is TensorFlow's allocator; buffers that gRPC and NCCL keep for themselves are
outside it, and outside these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.graph import Graph, Operation
    from snugly.predicting.strategies import Strategy

COLLECTIVE = "CollectiveReduceV2"


@dataclass(frozen=True, slots=True)
class Share:
    """The peak of one process or device, with the range that is meant to hold it; predicted."""

    peak: Size
    low: Size
    high: Size

    def together(self, count: int, resident: Size) -> Share:
        """So many of them: at best one is at its peak while the others hold what is resident."""
        return Share(self.peak * count, self.low + resident * (count - 1), self.high * count)

    def to_data(self) -> dict[str, Any]:
        """Plain bytes, and where they come from."""
        return {
            "peak": int(self.peak),
            "low": int(self.low),
            "high": int(self.high),
            "provenance": "predicted",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Who needs how much under a strategy.

    `replica` is one device that trains, and what the prediction itself is about; `worker` is all
    that the devices of one worker need together: one memory where they are CPUs, one each where
    they are GPUs. `exchange` says what the exchange of gradients takes of a replica, by name, in
    requested bytes, though not all of it at the same moment.
    """

    strategy: Strategy
    batch_size: int
    batch_size_per_replica: int
    replica: Share
    worker: Share
    exchange: Mapping[str, Size]
    parameter_servers: Sequence[Share] = ()

    @property
    def is_even(self) -> bool:
        """Whether every replica gets the same number of examples."""
        return self.batch_size % self.strategy.in_step == 0

    def to_data(self) -> dict[str, Any]:
        """Plain numbers under the names of the attributes."""
        return {
            "strategy": str(self.strategy),
            "replicas": self.strategy.replicas,
            "workers": self.strategy.workers,
            "batch_size": self.batch_size,
            "batch_size_per_replica": self.batch_size_per_replica,
            "replica": self.replica.to_data(),
            "worker": self.worker.to_data(),
            "parameter_servers": [server.to_data() for server in self.parameter_servers],
            "exchange": {
                name: {"bytes": int(size), "provenance": "predicted"}
                for name, size in self.exchange.items()
            },
        }


def exchange_of(graph: Graph) -> dict[str, Size]:
    """What of a replica's step is there only because gradients are exchanged.

    `packed`: gradients end to end, reduced where they lie; `received`: pieces that come from other
    replicas; `unpacked`: reduced gradients cut apart, where that copies them.
    """
    collectives = [operation for operation in graph.operations if operation.type == COLLECTIVE]
    reduced = {operation.outputs[0] for operation in collectives}
    splits = [
        operation
        for operation in graph.operations
        if operation.type in {"Split", "SplitV"} and reduced.intersection(operation.inputs)
    ]
    return {
        "packed": Size(sum(graph.tensors[tensor].bytes for tensor in reduced)),
        "received": Size(sum(sum(operation.workspace) for operation in collectives)),
        "unpacked": Size(sum(_made(graph, operation) for operation in splits)),
    }


def _made(graph: Graph, operation: Operation) -> int:
    """Bytes of outputs with buffers of their own."""
    shares = operation.aliases or (-1,) * len(operation.outputs)
    return sum(
        graph.tensors[tensor].bytes
        for tensor, shared in zip(operation.outputs, shares, strict=True)
        if shared < 0
    )
