"""What a node of a GraphDef gives back: the type of each output, from TensorFlow's own operator definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any


@cache
def _definition(operator: str) -> Any:
    from tensorflow.python.framework import op_def_registry

    return op_def_registry.get(operator)


@cache
def type_of(enum: int) -> tuple[str, int]:
    """Name and element size of a DataType. Handles and strings count nothing here."""
    from tensorflow.python.framework import dtypes

    dtype = dtypes.as_dtype(enum).base_dtype
    if dtype in (dtypes.resource, dtypes.variant, dtypes.string):
        return dtype.name, 0
    return dtype.name, dtype.size


def _types(arguments: Any, attributes: Any) -> list[int]:
    types: list[int] = []
    for argument in arguments:
        if argument.type_list_attr:
            types.extend(attributes[argument.type_list_attr].list.type)
            continue
        enum = argument.type or attributes[argument.type_attr].type
        count = attributes[argument.number_attr].i if argument.number_attr else 1
        types.extend([enum] * count)
    return types


def output_types(node: Any) -> list[int]:
    """The DataType of each output of a NodeDef; an operator nobody defined has none that we know."""
    definition = _definition(node.op)
    if definition is None:
        return []
    return _types(definition.output_arg, node.attr)


def is_stateful(operator: str) -> bool:
    definition = _definition(operator)
    return definition is None or definition.is_stateful


class Attributes(Mapping[str, Any]):
    """A node's attributes as plain Python values, converted when asked for: most never are."""

    __slots__ = ("_proto",)

    def __init__(self, proto: Any) -> None:
        self._proto = proto

    def __getitem__(self, name: str) -> Any:
        if name not in self._proto:  # indexing a protobuf map would add the key
            raise KeyError(name)
        return _plain(self._proto[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._proto)

    def array(self, name: str) -> Any:
        """A tensor attribute as a NumPy array; ask only for small ones."""
        from tensorflow.python.framework import tensor_util

        return tensor_util.MakeNdarray(self._proto[name].tensor)

    def __len__(self) -> int:
        return len(self._proto)


def _plain(value: Any) -> Any:
    match value.WhichOneof("value"):
        case "i" | "f" | "b" as which:
            return getattr(value, which)
        case "s":
            return value.s.decode(errors="replace")
        case "type":
            return type_of(value.type)[0]
        case "shape":
            return tuple(dimension.size for dimension in value.shape.dim)
        case "func":
            return value.func.name
        case "list":
            items = value.list
            if items.s:
                return [item.decode(errors="replace") for item in items.s]
            if items.type:
                return [type_of(item)[0] for item in items.type]
            return list(items.i) or list(items.f) or list(items.b)
        case _:
            return None


@cache
def type_by_name(name: str) -> tuple[str, int]:
    """Name and element size of a type that was given by its name."""
    from tensorflow.python.framework import dtypes

    return type_of(dtypes.as_dtype(name).as_datatype_enum)
