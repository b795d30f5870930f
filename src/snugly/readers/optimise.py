"""ConcreteFunction → the GraphDef that TensorFlow would run: after Grappler, with all shapes.

Nothing runs but Grappler itself (which folds small constants). Variables become handles with a
known shape, so that shapes follow from them; their values are never touched.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.readers.arguments import as_arguments, as_placeholders
from snugly.readers.placement import place_kernel
from snugly.readers.signatures import Attributes
from snugly.readers.start import placing_on_paper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snugly.readers.node import Value

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


@dataclass(frozen=True, slots=True)
class Optimised:
    """What runs, and how to find its ends again."""

    graph_def: Any
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Body:
    """A library function's body: its graph, its arguments' nodes, its results' tensors."""

    graph_def: Any
    arguments: tuple[str, ...]
    results: tuple[str, ...]


def optimise(function: Any, *, device: str = CPU) -> Optimised:
    """Grappler's answer for a traced function, all of it on one device."""
    from tensorflow.python.framework import dtypes

    graph = function.graph
    graph_def = graph.as_graph_def()
    handles = resource_shapes(graph)
    for node in graph_def.node:
        if node.name in handles:
            as_variable(node, *handles[node.name])
    outputs = tuple(output.name for output in graph.outputs if output.dtype != dtypes.resource)
    fetches = [*outputs, *(operation.name for operation in graph.control_outputs)]
    return Optimised(with_shapes(_run_grappler(graph_def, fetches, device)), outputs)


def optimise_signature(signature: Any, *, device: str = CPU) -> Optimised:
    """The same for a signature of a SavedModel."""
    return Optimised(
        with_shapes(_run_grappler(signature.graph_def, signature.fetches, device)),
        signature.fetches,
    )


def _run_grappler(graph_def: Any, fetches: Any, device: str) -> Any:
    from tensorflow.core.protobuf import config_pb2, meta_graph_pb2
    from tensorflow.python.grappler import tf_optimizer

    if not fetches:
        return graph_def
    # Fusions and layouts are chosen by device, and a node without one gets none.
    _assign_devices(graph_def.node, device)
    for library_function in graph_def.library.function:
        _assign_devices(library_function.node_def, device)
    placeholders = as_arguments(graph_def)
    meta_graph = meta_graph_pb2.MetaGraphDef(graph_def=graph_def)
    meta_graph.collection_def["train_op"].node_list.value.extend(fetches)
    config = config_pb2.ConfigProto()
    # Grappler skips graphs of fewer than four nodes unless told otherwise; a function's body never.
    config.graph_options.rewrite_options.min_graph_nodes = -1
    with placing_on_paper() if device == GPU else nullcontext():
        optimised = tf_optimizer.OptimizeGraph(config, meta_graph, cluster=_cluster_of(device))
    as_placeholders(optimised, placeholders)
    return optimised


def _assign_devices(nodes: Any, device: str) -> None:
    for node in nodes:
        attribute = Attributes(node.attr).get
        on_cpu = device == GPU and not place_kernel(node.op, attribute, 0, 0).on_gpu
        node.device = CPU if on_cpu else device


def _cluster_of(device: str) -> Any:
    """A cluster on paper, so that Grappler does what it would do on a machine with this device.

    Left to itself, Grappler starts a session on the machine that it finds, and says so on standard
    error at every log level (TF 2.17 to 2.20). For a GPU the layout optimizer asks for the
    architecture (generic_layout_optimizer.cc): here it is Hopper's, on which all was measured.
    """
    from tensorflow.core.protobuf import device_properties_pb2
    from tensorflow.python.grappler import cluster

    # Cores and MHz are any, and changed no graph that was compared; without them Grappler's cost
    # model complains (op_level_cost_estimator.cc, TF 2.20).
    devices = {CPU: device_properties_pb2.DeviceProperties(type="CPU", num_cores=1, frequency=1000)}
    if device == GPU:
        devices[GPU] = device_properties_pb2.DeviceProperties(
            type="GPU", vendor="NVIDIA", environment={"architecture": "9.0"}
        )
    return cluster.Cluster(
        devices=[
            device_properties_pb2.NamedDevice(name=name, properties=properties)
            for name, properties in devices.items()
        ]
    )


def resource_shapes(graph: Any) -> dict[str, tuple[int, Any]]:
    """Type and shape of each variable that reaches the function through a handle."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import handle_data_util

    found: dict[str, tuple[int, Any]] = {}
    for tensor in graph.inputs:
        if tensor.dtype == dtypes.resource:
            data = handle_data_util.get_resource_handle_data(tensor)
            if data is not None and data.is_set and len(data.shape_and_type) == 1:
                found[tensor.op.name] = (data.shape_and_type[0].dtype, data.shape_and_type[0].shape)
    return found


def as_variable(node: Any, dtype: int, shape: Any) -> None:
    """Turn a handle's placeholder into its variable: the shape is then known downstream."""
    node.op = "VarHandleOp"
    node.ClearField("attr")
    node.attr["dtype"].type = dtype
    node.attr["shape"].shape.CopyFrom(shape)
    node.attr["shared_name"].s = node.name.encode()


def with_shapes(graph_def: Any) -> Any:
    """Put `_output_shapes` on every node, by TensorFlow's own shape functions.

    Those stop at the gates of a loop. A loop variable keeps its shape from turn to turn (or else
    TensorFlow would have refused the loop), so for this purpose Enter and Exit just hand on, and
    both inputs of the loop's Merge are its first one.
    """
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        tf.graph_util.import_graph_def(_without_loops(graph_def), name="")
    shaped = graph.as_graph_def(add_shapes=True)
    shapes = {node.name: node.attr["_output_shapes"] for node in shaped.node}
    for node in graph_def.node:
        if node.name in shapes:
            node.attr["_output_shapes"].CopyFrom(shapes[node.name])
    return graph_def


def _without_loops(graph_def: Any) -> Any:
    """A graph of the same shapes that TensorFlow's importer accepts and can follow to its end."""
    turns = {node.name for node in graph_def.node if node.op == "NextIteration"}
    special = (_is_undeclared(node) or _adds_lists(node) for node in graph_def.node)
    if not turns and not any(special):
        return graph_def
    straight = type(graph_def)()
    straight.CopyFrom(graph_def)
    for node in straight.node:
        if node.op in ("Enter", "Exit"):
            node.op = "Identity"
            _keep_attributes(node, "T")
        elif (
            node.op == "Merge" and len(node.input) > 1 and node.input[1].partition(":")[0] in turns
        ):
            node.input[1] = node.input[0]
        elif _is_undeclared(node):
            node.op = "Conv2D"
            _keep_inputs(node, 2)
            _keep_attributes(node, "T", "strides", "padding", "data_format", "dilations")
        elif _adds_lists(node):
            node.op = "Identity"
            _keep_inputs(node, 1)
            _keep_attributes(node, "T")
    return straight


def _is_undeclared(node: Any) -> bool:
    """Grappler fuses bfloat16 convolutions for oneDNN; the fused operator is not declared so."""
    from tensorflow.python.framework import dtypes

    return node.op == "_FusedConv2D" and node.attr["T"].type == dtypes.bfloat16.as_datatype_enum


def _adds_lists(node: Any) -> bool:
    """AddN of lists: its shape function fails (TF 2.21) and leaves a process that hangs."""
    from tensorflow.python.framework import dtypes

    return node.op == "AddN" and node.attr["T"].type == dtypes.variant.as_datatype_enum


def _keep_inputs(node: Any, count: int) -> None:
    control = [name for name in node.input if name.startswith("^")]
    node.input[:] = [*node.input[:count], *control]


def _keep_attributes(node: Any, *names: str) -> None:
    for name in set(node.attr) - set(names):
        del node.attr[name]


def body_of(
    definition: Any, library: Any, shapes: list[Any], variables: Mapping[int, Value]
) -> Body:
    """The body of a library function for arguments of these shapes; `variables` are handles."""
    import tensorflow as tf
    from tensorflow.python.framework import function_def_to_graph

    with tf.Graph().as_default():
        graph_def, flat_names = function_def_to_graph.function_def_to_graph_def(
            definition, [tf.TensorShape(shape) for shape in shapes]
        )
    arguments = tuple(argument.name for argument in definition.signature.input_arg)
    nodes = {node.name: node for node in graph_def.node}
    for position, value in variables.items():
        dtype = tf.as_dtype(value.dtype).as_datatype_enum
        # A shape that is not known stays unknown; TensorFlow's stubs do not say that None is one.
        shape = tf.TensorShape(value.shape)  # pyright: ignore[reportArgumentType]
        as_variable(nodes[arguments[position]], dtype, shape.as_proto())
    graph_def.library.CopyFrom(library)
    returned = tuple(
        flat_names[definition.ret[output.name]] for output in definition.signature.output_arg
    )
    return Body(with_shapes(graph_def), arguments, returned)
