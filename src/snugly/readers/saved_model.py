"""A SavedModel folder → the graph behind one of its signatures, from the file alone: no variable is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snugly.errors import InputError, UnreadableProgramError
from snugly.readers.dimensions import Dimensions

LARGEST_FILE = 2 << 30  # a protobuf cannot be larger
DEFAULT_SIGNATURE = "serving_default"


@dataclass(frozen=True, slots=True)
class Signature:
    """A graph with its ends: what to feed, what to fetch."""

    name: str
    graph_def: Any
    fetches: tuple[str, ...]


def read_saved_model(folder: Path, dimensions: Dimensions, signature: str | None = None) -> Signature:
    """The named signature, `serving_default` where nothing is named."""
    meta_graph = _meta_graph(folder)
    name, definition = _choose(folder, meta_graph, signature)
    _refuse_foreign(folder, meta_graph)
    graph_def = meta_graph.graph_def
    nodes = {node.name: node for node in graph_def.node}
    for argument, info in definition.inputs.items():
        node = nodes.get(info.name.partition(":")[0])
        if node is None or node.op != "Placeholder":
            continue
        open_shape = None if info.tensor_shape.unknown_rank else tuple(
            None if size.size < 0 else size.size for size in info.tensor_shape.dim
        )
        shape = dimensions.fill(argument, open_shape)
        del node.attr["shape"].shape.dim[:]
        node.attr["shape"].shape.unknown_rank = False
        for size in shape:
            node.attr["shape"].shape.dim.add(size=size)
    return Signature(name, graph_def, tuple(info.name for info in definition.outputs.values()))


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
        raise UnreadableProgramError(f"{path.name} in {folder.name} is larger than a protobuf can be")
    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString(path.read_bytes())
    except DecodeError as problem:
        raise UnreadableProgramError(f"{folder.name}/saved_model.pb is damaged", hint="export the model again") from problem
    served = [graph for graph in saved.meta_graphs if "serve" in graph.meta_info_def.tags] or list(saved.meta_graphs)
    if not served:
        raise UnreadableProgramError(f"{folder.name} holds no graph", hint="export the model again")
    return served[0]


def _choose(folder: Path, meta_graph: Any, wanted: str | None) -> tuple[str, Any]:
    signatures = {
        name: signature
        for name, signature in meta_graph.signature_def.items()
        if signature.outputs and name != "__saved_model_init_op"
    }
    name = wanted or (DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in signatures else next(iter(sorted(signatures)), ""))
    if name not in signatures:
        raise InputError(
            f"{folder.name} has no signature to predict",
            hint="export it with a signature: tf.saved_model.save(model, path, signatures=...)",
        )
    return name, signatures[name]


def _refuse_foreign(folder: Path, meta_graph: Any) -> None:
    """Operators this TensorFlow does not know cannot be predicted: nobody but their library knows their shapes."""
    from tensorflow.python.framework import op_def_registry

    own = {function.signature.name for function in meta_graph.graph_def.library.function}
    used = {node.op for node in meta_graph.graph_def.node}
    used.update(node.op for function in meta_graph.graph_def.library.function for node in function.node_def)
    foreign = sorted(name for name in used - own if op_def_registry.get(name) is None)
    if foreign:
        raise UnreadableProgramError(
            f"{folder.name} uses operators this TensorFlow does not know: {', '.join(foreign[:5])}",
            hint="load their library first: tf.load_op_library(...) in a script, and give script.py:name",
        )
