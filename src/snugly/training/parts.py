"""A model's training step in parts: one for each call of a layer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.planning.recomputing import Problem, problem_of
from snugly.readers.dimensions import Dimensions
from snugly.readers.read import read_program
from snugly.training.checkpoint import RecomputedCall
from snugly.training.cutting import Step, ordered_nodes
from snugly.training.segments import run_graph, run_nodes, same_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snugly.readers.node import Machine
    from snugly.readers.read import Reading

_SCOPE = "snugly_part_{}"
_IN_SCOPE = re.compile(r"(?:^|/)snugly_part_(\d+)(?:_\d+)?(?:/|$)")


@dataclass(frozen=True, slots=True)
class PartedStep:
    """One training step, read, and as the planner sees it."""

    reading: Reading
    problem: Problem


def read_parts(
    model: Any,
    example: tuple[Any, ...],
    batch_size: int | None,
    machine: Machine | None = None,
    dimensions: Mapping[str, int] | None = None,
) -> PartedStep:
    """Read a training step of a model that has a graph of layers, in parts, without running it."""
    made = same_model(model)
    scoped = ScopedCall(made)
    made.__dict__["call"] = scoped
    reading = read_program(
        made,
        example,
        dimensions=Dimensions(batch_size, dimensions or {}),
        training=True,
        jit_compile=False,
        machine=machine,
    )
    names = [node.operation.name for node in scoped.nodes]
    return PartedStep(reading, problem_of(reading.graph, names, part_of))


def part_of(operation: str) -> int | None:
    """The part in whose scope an operation was made."""
    found = _IN_SCOPE.search(operation)
    return int(found[1]) if found else None


class ScopedCall(RecomputedCall):
    """Takes the place of a Functional model's `call`: each node works in a scope of its own."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.nodes = ordered_nodes(model)

    def __call__(self, inputs: Any, training: Any = None, mask: Any = None, **more: Any) -> Any:
        """Run the model, so that the names of operations say which node they are of."""
        import tensorflow as tf

        def run(values: dict[int, Any], context: Mapping[str, Any]) -> None:
            for index, node in enumerate(self.nodes):
                with tf.name_scope(_SCOPE.format(index)):
                    run_nodes(
                        Step((node,), recomputed=False, inputs=(), outputs=()), values, context
                    )

        return run_graph(self.layer, run, inputs, mask, {"training": training, **more})
