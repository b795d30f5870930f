"""The workspace of one node of the XNNPACK delegate: tensors that only its operators touch.

Operators that work element by element write over an input that nothing else reads; one that
quantises its input does so before it begins, so that its output may lie where the input lay.

Source: ``src/runtime.c`` of XNNPACK, August 2026.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from snugly.allocators.litert_arena import Request
from snugly.graph import Kind
from snugly.predicting.lite_litert import ArenaTensor, arena_bytes
from snugly.readers.tflite.xnnpack_operators import IN_PLACE, input_of, is_dynamic, is_pixelwise

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from snugly.readers.tflite import LiteSubgraph

EXTRA: Final = 16  # XNN_EXTRA_BYTES: kernels may read so far beyond a tensor
EXTRA_SCALES: Final = 15  # XNN_EXTRA_QUANTIZATION_PARAMS, likewise
SCALE: Final = 8  # bytes: xnn_qd8_quantization_params, one for each image or row


class Workspace:
    """What a node of the delegate has in its workspace, and the bytes of it.

    `part` are its operators, `mine` the tensors that they alone touch, and `never` those of them
    that are never made.
    """

    def __init__(
        self,
        subgraph: LiteSubgraph,
        part: Sequence[int],
        mine: Collection[int],
        never: Collection[int],
    ) -> None:
        self._subgraph = subgraph
        self._part = part
        self._mine = mine
        self._never = never
        self._readers: dict[int, list[int]] = {}
        for step in part:
            for index in subgraph.operators[step].inputs:
                self._readers.setdefault(index, []).append(step)
        self._owner: dict[int, int] = {}  # a tensor -> the one in whose place it lies
        # Two moments a step: in the first, an input is quantised or laid out; then it is read.
        self._last = {index: self._last_moment(index) for index in mine}
        self._share()
        moments = [*self._own(), *self._copies()]
        self.bytes = arena_bytes(moments)
        self.tensors = [
            replace(one, request=Request(one.request.bytes, one.step, one.request.last // 2))
            for one in moments
        ]

    def _last_moment(self, index: int) -> int:
        moments = [
            2 * step + (not is_dynamic(self._subgraph.operators[step], self._subgraph))
            for step in self._readers.get(index, ())
        ]
        return max(moments, default=0)

    def _share(self) -> None:
        """Let outputs lie over inputs, and what would be padded live until it is read."""
        for step in self._part:
            operator = self._subgraph.operators[step]
            made = operator.outputs[0] if operator.outputs else -1
            if operator.name == "PAD" and made in self._never and operator.inputs[0] in self._mine:
                given = operator.inputs[0]
                self._last[given] = max(self._last[given], self._last[made])
            elif operator.name in IN_PLACE and self._is_read_once(made):
                given = next((one for one in operator.inputs if self._may_reuse(one, made)), None)
                if given is not None:
                    self._owner[made] = self._owner.get(given, given)
        for index, owner in self._owner.items():
            self._last[owner] = max(self._last[owner], self._last[index])

    def _is_read_once(self, index: int) -> bool:
        return index in self._mine and len(self._readers.get(index, ())) == 1

    def _may_reuse(self, given: int, made: int) -> bool:
        tensors = self._subgraph.tensors
        return self._is_read_once(given) and tensors[given].bytes == tensors[made].bytes

    def _own(self) -> list[ArenaTensor]:
        """The tensors of the model that lie in the workspace."""
        found: list[ArenaTensor] = []
        for step in self._part:
            operator = self._subgraph.operators[step]
            for index in operator.outputs:
                if index not in self._mine or index in self._owner or index in self._never:
                    continue
                tensor, first = self._subgraph.tensors[index], 2 * step + 1
                request = Request(tensor.bytes + EXTRA, first, max(first, self._last[index]))
                named = tensor.name, operator.name, index, step
                found.append(ArenaTensor(request, Kind.ACTIVATION, *named))
        return found

    def _copies(self) -> list[ArenaTensor]:
        """Inputs that are quantised while it runs, and those of dense layers that are laid out."""
        found: list[ArenaTensor] = []
        for step in self._part:
            operator = self._subgraph.operators[step]
            values = input_of(operator, self._subgraph)
            if values is None:
                continue
            dense = operator.name == "FULLY_CONNECTED"
            flattened = dense and not operator.options.get("keep_num_dims")
            if flattened and operator.inputs[0] not in self._mine:
                size = values.bytes + EXTRA
                found.append(self._copy(step, size, f"input of {operator.name}"))
            if is_dynamic(operator, self._subgraph) and not is_pixelwise(operator, self._subgraph):
                shape = values.shape or (1,)
                rows = values.elements // max(1, shape[-1]) if dense else shape[0]
                size = values.elements + EXTRA + SCALE * (rows + EXTRA_SCALES)
                found.append(self._copy(step, size, f"quantised input of {operator.name}"))
        return found

    def _copy(self, step: int, size: int, name: str) -> ArenaTensor:
        operator = self._subgraph.operators[step].name
        request = Request(size, 2 * step, 2 * step + 1)
        return ArenaTensor(request, Kind.WORKSPACE, name, operator, None, step)
