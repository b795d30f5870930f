"""Look at a rewritten file from scratch: does every operator find what was written for it?

The file is read again and played: each operator must find all of its inputs whole, and what it
writes destroys whatever lies in the same bytes. Lifetimes are not asked for, and nothing of the
planner is used but where the interpreter puts each buffer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from snugly.errors import InputError
from snugly.lite.offline_plan import situations_of
from snugly.lite.overlap_rules import distances_of
from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.schema import CALLED_SUBGRAPHS
from snugly.readers.tflite.structures import HOST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snugly.lite.overlap_rules import Situation
    from snugly.predicting.lite_micro import HeadBuffer
    from snugly.readers.tflite import LiteModel, LiteOperator


def faults_of_file(written: bytes, original: LiteModel) -> list[str]:
    """What is wrong with a rewritten file, in sentences; nothing, where it is sound."""
    model = read_tflite(written)
    faults = _differences(model, original)
    return faults or _Play(written, model).run()


def require_playable(source: bytes, model: LiteModel) -> None:
    """Refuse a model whose operators read what nothing has written: nothing is known of it then."""
    faults = _Play(source, replace(model, offline_offsets=None)).run()
    if faults:
        raise InputError(f"the model cannot be followed: {faults[0]}", code="SNG570")


def _differences(model: LiteModel, original: LiteModel) -> list[str]:
    """Whether the files say the same but for the plan and the order of operators."""
    faults: list[str] = []
    if len(model.subgraphs) != len(original.subgraphs):
        return ["the number of subgraphs is another"]
    for one, other in zip(model.subgraphs, original.subgraphs, strict=True):
        if (one.tensors, one.inputs, one.outputs) != (other.tensors, other.inputs, other.outputs):
            faults.append("the tensors of a subgraph are others")
        if Counter(map(_identity, one.operators)) != Counter(map(_identity, other.operators)):
            faults.append("the operators of a subgraph are others")
    return faults


def _identity(operator: LiteOperator) -> tuple[object, ...]:
    return (
        operator.name,
        operator.inputs,
        operator.outputs,
        operator.intermediates,
        tuple(sorted(operator.options.items())),
        operator.shared_name,
        operator.version,
    )


class _Play:
    """The bytes of the head while a model runs: which tensors are whole."""

    def __init__(self, written: bytes, model: LiteModel) -> None:
        self._model = model
        self._situations = [
            situations_of(written, model, number) for number in range(len(model.subgraphs))
        ]
        self._faults: list[str] = []
        self._places: dict[tuple[int, int], HeadBuffer] = {}
        self._scratch: dict[tuple[int, str], list[HeadBuffer]] = {}
        for buffer in plan_micro(model, HOST).buffers:
            if buffer.tensor is not None:
                self._places[buffer.subgraph, buffer.tensor] = buffer
            else:
                key = buffer.subgraph, buffer.operator
                self._scratch.setdefault(key, []).append(buffer)
        self._whole: set[tuple[int, int]] = set()

    def run(self) -> list[str]:
        """Play the first subgraph, and those that it calls."""
        self._subgraph(0)
        return self._faults

    def _subgraph(self, number: int) -> None:
        subgraph = self._model.subgraphs[number]
        for index in subgraph.inputs:
            self._write(number, index)
        for situation in self._situations[number]:
            operator = situation.operator
            self._find(number, operator.inputs, f"an input of {operator.name}")
            self._overlays(number, situation)
            self._destroy_under_scratch(number, operator)
            for index in operator.outputs:
                self._write(number, index)
            for option in CALLED_SUBGRAPHS.get(operator.name, ()):
                self._subgraph(operator.options[option])
                self._find(number, operator.inputs, f"an input of {operator.name}")
                for index in operator.outputs:
                    self._write(number, index)
        self._find(number, subgraph.outputs, "an output of the model")

    def _find(self, number: int, indices: Iterable[int], what: str) -> None:
        for index in indices:
            key = number, index
            if key in self._places and key not in self._whole:
                name = self._places[key].name
                self._faults.append(f"{name!r}, {what}, is not whole when it is needed")

    def _write(self, number: int, index: int) -> None:
        key = number, index
        if key not in self._places:
            return
        buffer = self._places[key]
        self._destroy(buffer)
        self._whole.add(key)

    def _destroy(self, buffer: HeadBuffer) -> None:
        self._whole = {key for key in self._whole if not _share(buffer, self._places[key])}

    def _destroy_under_scratch(self, number: int, operator: LiteOperator) -> None:
        """Scratch is used while inputs are read and outputs written: it may lie under neither."""
        near = [
            self._places[number, index]
            for index in (*operator.inputs, *operator.outputs)
            if (number, index) in self._places
        ]
        for buffer in self._scratch.get((number, operator.name), ()):
            moment = self._moment(number, operator)
            if moment is not None and not buffer.planned.first <= moment <= buffer.planned.last:
                continue
            if any(_share(buffer, other) for other in near):
                self._faults.append(f"scratch of {operator.name} lies over its own tensors")
            self._destroy(buffer)

    def _moment(self, number: int, operator: LiteOperator) -> int | None:
        """The scope of an operator, known by what it makes."""
        made = [self._places.get((number, index)) for index in operator.outputs]
        return next((buffer.planned.first for buffer in made if buffer is not None), None)

    def _overlays(self, number: int, situation: Situation) -> None:
        """An output that shares bytes with an input must keep the distance of its kernel."""
        operator, allowed = situation.operator, distances_of(situation)
        for output in operator.outputs:
            for position, given in enumerate(operator.inputs):
                writer = self._places.get((number, output))
                reader = self._places.get((number, given))
                if writer is None or reader is None or not _share(writer, reader):
                    continue
                distance = allowed.get(position)
                apart = writer.offset - reader.offset
                if distance is None or (
                    apart != 0 if distance.same_place_only else apart > distance.furthest
                ):
                    self._faults.append(
                        f"{operator.name} would write over {reader.name!r} before it is read"
                    )


def _share(one: HeadBuffer, other: HeadBuffer) -> bool:
    return (
        one.offset < other.offset + other.planned.bytes
        and other.offset < one.offset + one.planned.bytes
    )
