"""What a node of a GraphDef gives back, from TensorFlow's own operator definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    """The DataType of each output of a NodeDef; of an undefined operator none is known."""
    definition = _definition(node.op)
    if definition is None:
        return []
    return _types(definition.output_arg, node.attr)


def is_stateful(operator: str) -> bool:
    """Whether two runs may differ; so it is said of an operator nobody defined."""
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


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


# By the name of the field in AttrValue; a tensor is asked for with `array`.
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "i": lambda number: number,
    "f": lambda number: number,
    "b": lambda truth: truth,
    "s": _text,
    "type": lambda enum: type_of(enum)[0],
    "shape": lambda shape: tuple(dimension.size for dimension in shape.dim),
    "func": lambda function: function.name,
}


def _plain(value: Any) -> Any:
    field = value.WhichOneof("value")
    if field == "list":
        return _plain_list(value.list)
    return _PLAIN[field](getattr(value, field)) if field in _PLAIN else None


def _plain_list(items: Any) -> list[Any]:
    """A list holds items of one kind, which it does not name."""
    for field in ("s", "type", "i", "f", "b", "func"):
        if values := getattr(items, field):
            return [_PLAIN[field](value) for value in values]
    return []


@cache
def type_by_name(name: str) -> tuple[str, int]:
    """Name and element size of a type that was given by its name."""
    from tensorflow.python.framework import dtypes

    return type_of(dtypes.as_dtype(name).as_datatype_enum)
