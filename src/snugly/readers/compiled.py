"""A step that XLA compiles as a whole → Graph: what is resident, and one operation with scratch.

XLA is asked for its buffer assignment, with phantoms in place of the variables, so that it can say
which results are written over the variables they replace. Nothing is run, no variable is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snugly.errors import UnpredictableProgramError
from snugly.graph import Access, Graph, Kind, Operation, Tensor
from snugly.readers.node import Value
from snugly.readers.optimise import resource_shapes
from snugly.readers.phantom import phantom_variable
from snugly.readers.signatures import type_of
from snugly.readers.variables import Variable, in_order_of_creation
from snugly.readers.xla_program import LAUNCH_SECONDS, POINTER, Assignment, assigned

if TYPE_CHECKING:
    from collections.abc import Mapping

Handles = dict[str, tuple[int, Any]]


def compiled_graph(
    function: Any, variables: Mapping[str, Variable], platform: str = "CPU"
) -> Graph:
    """The graph of a ConcreteFunction, compiled for the CPU or the GPU of this machine."""
    handles = resource_shapes(function.graph)
    assignment = _assignment(function, handles, platform)
    graph = Graph()
    described: list[tuple[Variable, Value, int]] = []
    for position, (name, (dtype, shape)) in enumerate(handles.items()):
        variable = variables.get(name, Variable(name=name, position=position))
        value = _value(dtype, shape)
        described.append((variable, value, _tensor(graph, value.bytes, variable.kind)))
    graph.resident = in_order_of_creation(described)
    graph.inputs = [
        _tensor(graph, _value(node.attr["dtype"].type, node.attr["shape"].shape).bytes, Kind.INPUT)
        for node in _arguments(function, handles)
    ]
    graph.outputs = [
        _tensor(
            graph,
            _value(output.dtype.as_datatype_enum, output.shape.as_proto()).bytes,
            Kind.OUTPUT,
        )
        for output in function.graph.outputs
    ]
    table = POINTER * (len(graph.outputs) + len(handles))
    graph.operations.append(
        Operation(
            "XlaLaunch",
            "XlaLaunch",
            tuple(graph.inputs),
            tuple(graph.outputs),
            workspace=tuple(size for size in (assignment.scratch, table) if size),
            variables=tuple(resident.tensor for resident in graph.resident),
            access=Access.UPDATE,
            seconds=LAUNCH_SECONDS,
        )
    )
    return graph


def _assignment(function: Any, handles: Handles, platform: str) -> Assignment:
    import tensorflow as tf
    from tensorflow.python.eager import context

    arguments = _arguments(function, handles)
    specs = [
        tf.TensorSpec(tf.TensorShape(node.attr["shape"].shape), node.attr["dtype"].type)
        for node in arguments
    ]
    outputs = [output.name for output in function.graph.outputs]
    body = function.graph.as_graph_def()
    kept = [node for node in body.node if node.op != "Placeholder"]
    del body.node[:]
    body.node.extend(kept)
    with context.eager_mode():
        phantoms = {
            name: phantom_variable(dtype, tuple(size.size for size in shape.dim), platform)
            for name, (dtype, shape) in handles.items()
        }

        def step(*values: Any) -> Any:
            graph: Any = tf.compat.v1.get_default_graph()
            sources = {node.name: value for node, value in zip(arguments, values, strict=True)}
            sources |= {name: graph.capture(phantom.handle) for name, phantom in phantoms.items()}
            return tf.graph_util.import_graph_def(
                body, name="", input_map=sources, return_elements=outputs
            )

        try:
            compiled: Any = tf.function(step, jit_compile=True)
            answer = compiled.experimental_get_compiler_ir(*specs)(
                stage="optimized_hlo_proto_serialized", platform_name=platform
            )
        except (ValueError, tf.errors.OpError) as problem:
            raise UnpredictableProgramError(
                f"XLA cannot compile this program: {str(problem).splitlines()[0][:200]}",
                hint="predict it without XLA: jit_compile=False",
            ) from problem
    return assigned(answer)


def _arguments(function: Any, handles: Handles) -> list[Any]:
    nodes = function.graph.as_graph_def().node
    return [node for node in nodes if node.op == "Placeholder" and node.name not in handles]


def _tensor(graph: Graph, size: int, kind: Kind) -> int:
    graph.tensors.append(Tensor(size, kind))
    return len(graph.tensors) - 1


def _value(dtype: int, shape: Any) -> Value:
    return Value(*type_of(dtype), tuple(dimension.size for dimension in shape.dim))
