"""A traced program, packed so that another process can run it: operations, and the values they use.

What travels is the graph TensorFlow made of the user's function, with the weights it reads; neither
the function nor the model has to be importable, or even possible to pickle, where it runs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError
from snugly.jacobians.subject import tensorflow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BOUND: Final = frozenset({
    "EagerPyFunc", "PyFunc", "PyFuncStateless", "HashTableV2", "MutableHashTableV2",
    "AnonymousHashTable", "LookupTableFindV2", "IteratorGetNext", "ReadFile", "WriteFile",
})  # fmt: skip
"""Operations that use what only the process has that traced them."""


@dataclass(frozen=True, slots=True)
class Package:
    """A program as plain data."""

    graph: bytes
    inputs: tuple[str, ...]
    """Names of what is to be fed: the inputs, then what the program holds."""
    outputs: tuple[str, ...]
    held: tuple[Held, ...]
    digest: str
    """Of all but the values it holds: two packages that have the same one are the same program."""

    @property
    def bytes(self) -> int:
        """About what it takes."""
        return len(self.graph) + sum(held.value.nbytes for held in self.held)


@dataclass(frozen=True, slots=True)
class Held:
    """A value that a program uses beside its inputs."""

    value: np.ndarray
    is_variable: bool


def pack(program: Any, title: str, values: dict[int, np.ndarray] | None = None) -> Package:
    """Pack a concrete function.

    Args:
        program: The concrete function.
        title: The user's name for it.
        values: Values of variables that were read already, by their identity; more are added, so
            that programs of one function carry the same arrays.

    Raises:
        InputError: It uses something that exists in this process only.
    """
    values = {} if values is None else values
    graph = program.graph
    try:
        definition = graph.as_graph_def()
        raw = definition.SerializeToString(deterministic=True)
    except ValueError as error:
        raise _refusal(title, "its constants take more than 2 GiB") from error
    inner = [node for function in definition.library.function for node in function.node_def]
    bound = sorted({node.op for node in (*definition.node, *inner)} & _BOUND)
    if bound:
        raise _refusal(title, f"it uses {', '.join(bound)}")
    held: list[Held] = []
    places: list[str] = []
    for outer, place in graph.captures:
        held.append(_held(graph, outer, title, values))
        places.append(place.name)
    explicit = [tensor.name for tensor in program.inputs if tensor.name not in set(places)]
    inputs, outputs = (*explicit, *places), tuple(tensor.name for tensor in program.outputs)
    digest = hashlib.sha256(raw)
    digest.update(repr((inputs, outputs)).encode())
    return Package(raw, inputs, outputs, tuple(held), digest.hexdigest())


def unpack(package: Package) -> Any:
    """The program alone, to be called with inputs and with what it holds; it keeps no values."""
    tf = tensorflow()
    definition = tf.compat.v1.GraphDef.FromString(package.graph)
    operations = {node.name: node for node in definition.node}
    names = [name.partition(":")[0] for name in package.inputs]
    specs = [_spec(tf, operations[name]) for name in names]

    def body(*fed: Any) -> list[Any]:
        # Imported once, onto what is fed: pruning a graph afterwards copies it in Python.
        given = dict(zip(package.inputs, fed, strict=True))
        wanted = [name for name in package.outputs if name not in given]
        found = iter(tf.graph_util.import_graph_def(definition, given, wanted, name=""))
        # What the program hands on unchanged is no part of what was imported.
        return [
            tf.identity(given[name]) if name in given else next(found) for name in package.outputs
        ]

    return tf.compat.v1.wrap_function(body, specs)


def _spec(tf: Any, placeholder: Any) -> Any:
    shape = placeholder.attr["shape"].shape if "shape" in placeholder.attr else None
    return tf.TensorSpec(shape, tf.dtypes.as_dtype(placeholder.attr["dtype"].type))


def bound(
    program: Any, package: Package, variables: dict[int, Any]
) -> Callable[[Sequence[Any]], list[Any]]:
    """A program with its values, from a flat list of inputs to a flat list of outputs.

    Args:
        program: What `unpack` made.
        package: Whose values it is to use.
        variables: Variables that were made already for other programs, by the identity of values.
    """
    tf = tensorflow()
    rest: list[Any] = []
    for held in package.held:
        if id(held.value) not in variables:
            made = tf.Variable(held.value) if held.is_variable else tf.constant(held.value)
            variables[id(held.value)] = (made, held.value)
        made = variables[id(held.value)][0]
        rest.append(made.handle if held.is_variable else made)

    def run(leaves: Sequence[Any]) -> list[Any]:
        found = program(*leaves, *rest)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    # The variables live as long as the program that reads their handles.
    run.variables = variables  # type: ignore[attr-defined]
    return run


def _held(graph: Any, outer: Any, title: str, values: dict[int, np.ndarray]) -> Held:
    tf = tensorflow()
    if id(outer) not in values:
        if outer.dtype != tf.resource:
            if outer.dtype == tf.variant or not hasattr(outer, "numpy"):
                raise _refusal(title, f"it holds something of type {outer.dtype.name}")
            values[id(outer)] = np.asarray(outer.numpy())
        else:
            found = [v for v in graph.variables if getattr(v, "handle", None) is outer]
            if not found:
                raise _refusal(title, "it uses a table, an iterator or another open resource")
            values[id(outer)] = np.asarray(found[0].read_value().numpy())
    return Held(values[id(outer)], outer.dtype == tf.resource)


def _refusal(title: str, why: str) -> InputError:
    return InputError(f"{title} cannot be sent to workers: {why}", code="SNG586")
