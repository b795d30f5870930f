"""LiteModel: what a `.tflite` file says, checked and in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.readers.tflite.schema import TensorType


@dataclass(frozen=True, slots=True)
class LiteTensor:
    """One tensor of a subgraph, as the file declares it."""

    name: str
    shape: tuple[int, ...]
    type: TensorType
    buffer: int
    constant_bytes: int  # bytes of data that the file holds for it; 0 for all that is computed
    is_variable: bool = False
    signature: tuple[int, ...] = ()  # the shape with -1 for each open dimension, where it has any
    scales: int = 0  # how many quantisation scales; more than 1 is per channel
    zero_points: int = 0
    quantized_dimension: int = 0
    sparse: bool = False

    @property
    def elements(self) -> int:
        """The number of elements; of an open dimension, as many as the file declares."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bytes(self) -> int:
        """Bytes in LiteRT; types of less than a byte are packed."""
        return -(-self.elements * self.type.bits // 8)

    @property
    def micro_bytes(self) -> int:
        """Bytes in TFLite Micro, which gives each element at least one byte."""
        return self.elements * self.type.micro_bits // 8

    @property
    def is_constant(self) -> bool:
        """Whether its value stands in the file."""
        return self.constant_bytes > 0

    @property
    def is_quantized(self) -> bool:
        """Whether it has the parameters that the runtimes call affine quantisation."""
        return self.scales > 0 and self.zero_points > 0


@dataclass(frozen=True, slots=True)
class LiteOperator:
    """One operator of a subgraph: indices into its tensors, -1 for an input that is left out."""

    name: str  # ADD, CONV_2D, …; of a custom operator, the name it carries
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    intermediates: tuple[int, ...] = ()
    options: Mapping[str, int] = field(default_factory=dict[str, int])
    shared_name: str = ""  # of VAR_HANDLE: the variable
    is_custom: bool = False
    version: int = 1


@dataclass(frozen=True, slots=True)
class LiteSubgraph:
    """One subgraph, its operators in the order in which they run."""

    name: str
    tensors: Sequence[LiteTensor]
    operators: Sequence[LiteOperator]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def given(self, operator: LiteOperator, position: int) -> LiteTensor | None:
        """An operator's input, or None where it is left out."""
        inputs = operator.inputs
        if position >= len(inputs) or inputs[position] < 0:
            return None
        return self.tensors[inputs[position]]


@dataclass(frozen=True, slots=True)
class LiteModel:
    """A whole file. The first subgraph is the one that runs."""

    name: str
    size: int  # bytes of the file
    subgraphs: Sequence[LiteSubgraph]
    buffers: Sequence[int] = ()  # bytes of each buffer
    metadata: Mapping[str, int] = field(default_factory=dict[str, int])  # name -> buffer
    offline_offsets: tuple[int, ...] | None = None  # of all tensors of all subgraphs, -1 = free
    accelerators: tuple[str, ...] = ()
    description: str = ""

    @property
    def main(self) -> LiteSubgraph:
        """The subgraph that an interpreter runs."""
        return self.subgraphs[0]

    @property
    def is_bound(self) -> bool:
        """Whether its plan must stay: compilers for accelerators rely on where they put tensors."""
        return self.offline_offsets is not None and any(
            operator.is_custom for part in self.subgraphs for operator in part.operators
        )

    @property
    def weight_bytes(self) -> int:
        """Bytes of the file that are constants."""
        return sum(self.buffers)
