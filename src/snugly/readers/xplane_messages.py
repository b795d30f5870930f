"""The messages of TensorFlow's profiler files, as far as memory events need them.

Declared here by hand and kept in a pool of our own: TensorFlow registers the same names in
protobuf's default pool, and a trace must open where there is no TensorFlow. Field numbers are those
of tsl/profiler/protobuf/xplane.proto, unchanged from TensorFlow 2.16 to 2.21.

Three liberties, each allowed by protobuf's wire format: names are bytes (some are not UTF-8), maps
are the repeated entries they are made of, and lines and events are left serialized, so that what
is not needed is never parsed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

_PACKAGE: Final = "snugly.xplane"

_MESSAGES: Final = {
    "Space": ((1, "planes", "repeated Plane"),),
    "Plane": (
        (2, "name", "bytes"),
        (3, "lines", "repeated bytes"),
        (4, "event_metadata", "repeated Entry"),
        (5, "stat_metadata", "repeated Entry"),
    ),
    "Entry": ((1, "key", "int64"), (2, "value", "Metadata")),
    "Metadata": ((2, "name", "bytes"),),
    "Line": ((2, "name", "bytes"), (3, "timestamp_ns", "int64"), (4, "events", "repeated bytes")),
    "Event": (
        (1, "metadata_id", "int64"),
        (2, "offset_ps", "int64"),
        (4, "stats", "repeated Stat"),
    ),
    "Stat": (
        (1, "metadata_id", "int64"),
        (2, "double", "double"),
        (3, "uint", "uint64"),
        (4, "int", "int64"),
        (5, "str", "bytes"),
        (7, "ref", "uint64"),
    ),
}


@dataclass(frozen=True, slots=True)
class Messages:
    """The classes that protobuf makes of the declarations; each has `FromString`."""

    Space: Any
    Line: Any
    Event: Any


@cache
def messages() -> Messages:
    """The message classes, made once."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field_type: Any = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="snugly/xplane.proto", package=_PACKAGE, syntax="proto3"
    )
    for message, fields in _MESSAGES.items():
        declared = file.message_type.add(name=message)
        for number, name, kind in fields:
            field = declared.field.add(name=name, number=number)
            *repeated, type_name = kind.split()
            field.label = field_type.LABEL_REPEATED if repeated else field_type.LABEL_OPTIONAL
            if type_name in _MESSAGES:
                field.type = field_type.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{type_name}"
            else:
                field.type = getattr(field_type, f"TYPE_{type_name.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return Messages(
        *(
            message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
            for name in ("Space", "Line", "Event")
        )
    )
