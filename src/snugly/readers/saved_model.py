"""A SavedModel folder → the graph behind one of its signatures, from the file alone.

No variable is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError, UnreadableProgramError

if TYPE_CHECKING:
    from pathlib import Path

    from snugly.readers.dimensions import Dimensions

LARGEST_FILE = 2 << 30  # a protobuf cannot be larger
DEFAULT_SIGNATURE = "serving_default"


@dataclass(frozen=True, slots=True)
class Signature:
    """A graph with its ends: what to feed, what to fetch."""

    name: str
    graph_def: Any
    fetches: tuple[str, ...]


def read_saved_model(
    folder: Path, dimensions: Dimensions, signature: str | None = None
) -> Signature:
    """The named signature, `serving_default` where nothing is named."""
    meta_graph = _meta_graph(folder)
    name, definition = _choose(folder, meta_graph, signature)
    _refuse_foreign(folder, meta_graph)
    fetches = tuple(info.name for info in definition.outputs.values())
    graph_def = _needed(meta_graph.graph_def, fetches)
    nodes = {node.name: node for node in graph_def.node}
    for argument, info in definition.inputs.items():
        node = nodes.get(_node_of(info.name))
        if node is not None and node.op == "Placeholder":
            _set_shape(node, dimensions.fill(argument, _open_shape(info.tensor_shape)))
    return Signature(name, graph_def, fetches)


def _needed(graph_def: Any, fetches: tuple[str, ...]) -> Any:
    """The graph without other signatures: their inputs have open dimensions of their own."""
    nodes = {node.name: node for node in graph_def.node}
    needed: set[str] = set()
    waiting = [_node_of(fetch) for fetch in fetches]
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in needed:
            needed.add(name)
            waiting.extend(_node_of(source) for source in nodes[name].input)
    result = type(graph_def)(versions=graph_def.versions, library=graph_def.library)
    result.node.extend(node for node in graph_def.node if node.name in needed)
    return result


def _node_of(tensor: str) -> str:
    return tensor.lstrip("^").partition(":")[0]


def _open_shape(shape: Any) -> tuple[int | None, ...] | None:
    if shape.unknown_rank:
        return None
    return tuple(None if dimension.size < 0 else dimension.size for dimension in shape.dim)


def _set_shape(node: Any, shape: tuple[int, ...]) -> None:
    proto = node.attr["shape"].shape
    proto.Clear()
    proto.SetInParent()  # a scalar's shape is empty, and still known
    for size in shape:
        proto.dim.add(size=size)


def _meta_graph(folder: Path) -> Any:
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    path = folder / "saved_model.pb"
    if not path.is_file():
        raise UnreadableProgramError(
            f"{folder.name} is not a SavedModel: it holds no saved_model.pb",
            hint="give the folder that model.export() or tf.saved_model.save() wrote",
        )
    if path.stat().st_size > LARGEST_FILE:
        raise UnreadableProgramError(
            f"{path.name} in {folder.name} is larger than a protobuf can be"
        )
    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString(path.read_bytes())
    except DecodeError as problem:
        raise UnreadableProgramError(
            f"{folder.name}/saved_model.pb is damaged", hint="export the model again"
        ) from problem
    graphs = list(saved.meta_graphs)
    served = [graph for graph in graphs if "serve" in graph.meta_info_def.tags] or graphs
    if not served:
        raise UnreadableProgramError(f"{folder.name} holds no graph", hint="export the model again")
    return served[0]


def _choose(folder: Path, meta_graph: Any, wanted: str | None) -> tuple[str, Any]:
    signatures = {
        name: signature
        for name, signature in meta_graph.signature_def.items()
        if signature.outputs and name != "__saved_model_init_op"
    }
    usual = (
        DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in signatures else next(iter(sorted(signatures)), "")
    )
    name = wanted or usual
    if name not in signatures:
        raise InputError(
            f"{folder.name} has no signature to predict",
            hint="export it with a signature: tf.saved_model.save(model, path, signatures=...)",
        )
    return name, signatures[name]


def _refuse_foreign(folder: Path, meta_graph: Any) -> None:
    """Operators this TensorFlow does not know: only their library knows their shapes."""
    from tensorflow.python.framework import op_def_registry

    own = {function.signature.name for function in meta_graph.graph_def.library.function}
    used = {node.op for node in meta_graph.graph_def.node}
    for function in meta_graph.graph_def.library.function:
        used.update(node.op for node in function.node_def)
    foreign = sorted(name for name in used - own if op_def_registry.get(name) is None)
    if foreign:
        raise UnreadableProgramError(
            f"{folder.name} uses operators this TensorFlow does not know: {', '.join(foreign[:5])}",
            hint="load their library first: tf.load_op_library(...) in a script, and give"
            " script.py:name",
        )
