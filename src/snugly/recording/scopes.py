"""Where an operation comes from, by its name alone: for traces that were made without us.

TensorFlow puts the scope in front of an operation's name, and Keras opens one for the model and
one for each layer: `resnet50/conv1_conv/BiasAdd`. A scope is what the program says, not quite a
layer: it may have a number that the layer has not, and of models inside models only the outer two
levels are taken.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from snugly.graph.model import Origin
from snugly.timeline import Timeline

if TYPE_CHECKING:
    from snugly.recording.record import Record

LEVELS: Final = 2
"""The model and the layer; what is deeper belongs to how a layer computes."""

NOTE: Final = "layers are the first two name scopes of operations"

# What TensorFlow itself puts in front: calls of functions, and the tape for gradients.
_WRAPPER: Final = re.compile(r"(Stateful)?PartitionedCall(_\d+)?|gradient_tape|gradients?(_\d+)?")


@cache
def scope_of(operation: str) -> str | None:
    """The scope of an operation's name, without what TensorFlow puts in front; None without."""
    *scopes, _ = operation.split("/")
    while scopes and _WRAPPER.fullmatch(scopes[0]):
        del scopes[0]
    return "/".join(scopes[:LEVELS]) or None


def with_scopes(record: Record) -> Record:
    """The record with scopes in place of the layers it does not know."""
    spans = [
        span
        if span.origin.layer is not None or (scope := scope_of(span.operation)) is None
        else replace(span, origin=Origin(scope, span.origin.line))
        for span in record.timeline.spans
    ]
    scope_of.cache_clear()  # names of one file are of no use for the next
    return replace(
        record, timeline=Timeline(spans, record.timeline.length), notes=(*record.notes, NOTE)
    )
