"""What an eager operation of TensorFlow is about to ask for, told from its arguments.

Pure: shapes in, bytes out. None where it is not known; then TensorFlow's own check decides. The
arguments are those that TensorFlow's generated functions hand to its runtime: inputs in order, then
names of attributes each followed by its value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FLOAT: Final = 4
_STRING: Final = 24  # sizeof(tensorflow::tstring)
_ELEMENT_OF_SHUFFLE: Final = 24
"""sizeof(std::vector<Tensor>): what one place in a shuffle buffer takes while it is empty."""

# Times their inputs. Measured with TensorFlow 2.21: an SVD of 9 MB wanted more than 48 MB.
_SVD: Final = 12
_DECOMPOSITION: Final = 4
_SAME: Final = 3
# Maps of C++, which double: of five million numbers 9.5, 4.9 and 1.9 times their bytes were seen.
_UNIQUE: Final = 16
_TABLE: Final = 8
_SERIALISED: Final = 3


def bytes_of(tensor: Any) -> int:
    """Bytes of a tensor, an array or a number."""
    shape = shape_of(tensor)
    return math.prod(shape) * _item(tensor)


def shape_of(tensor: Any) -> tuple[int, ...]:
    """The shape of a tensor, an array or a number."""
    shape = getattr(tensor, "shape", ())
    return tuple(int(size) for size in shape)


def attribute(arguments: Sequence[Any], name: str, missing: Any = None) -> Any:
    """The value of an attribute."""
    for place, word in enumerate(arguments[:-1]):
        if isinstance(word, str) and word == name:
            return arguments[place + 1]
    return missing


def _item(tensor: Any) -> int:
    kind = getattr(tensor, "dtype", None)
    if getattr(kind, "name", "") == "string":
        return _STRING
    size = getattr(kind, "size", None) or getattr(kind, "itemsize", None)
    return size if isinstance(size, int) else _FLOAT


def _numbers(shape: Any) -> list[int] | None:
    """A shape that is itself a tensor or a list."""
    values = shape.numpy() if hasattr(shape, "numpy") else shape
    try:
        return [int(value) for value in values]
    except (TypeError, ValueError):
        return None


def _filled(inputs: Sequence[Any], item: int) -> int | None:
    shape = _numbers(inputs[0])
    return None if shape is None else math.prod(shape) * item


def _fill(words: Sequence[Any]) -> int | None:
    return _filled(words, _item(words[1]))


def _random(words: Sequence[Any]) -> int | None:
    kind = attribute(words, "dtype", attribute(words, "Tout"))
    return _filled(words, getattr(kind, "size", None) or _FLOAT)


def _broadcast(words: Sequence[Any]) -> int | None:
    shape = _numbers(words[1])
    return None if shape is None else math.prod(shape) * _item(words[0])


def _tile(words: Sequence[Any]) -> int | None:
    times = _numbers(words[1])
    return None if times is None else math.prod(times) * bytes_of(words[0])


def _product(words: Sequence[Any]) -> int | None:
    first, second = shape_of(words[0]), shape_of(words[1])
    if len(first) < 2 or len(second) < 2:  # noqa: PLR2004 - no matrices: TensorFlow's to refuse
        return None
    across = attribute(words, "transpose_a", attribute(words, "adj_x", False))
    along = attribute(words, "transpose_b", attribute(words, "adj_y", False))
    rows = first[-1] if across else first[-2]
    columns = second[-2] if along else second[-1]
    batch = max(math.prod(first[:-2]), math.prod(second[:-2]))
    return batch * rows * columns * _item(words[0])


def _convolution(words: Sequence[Any]) -> int | None:
    """An upper bound: padding can make an output as large as its input, by the strides."""
    image, kernel = shape_of(words[0]), shape_of(words[1])
    strides = attribute(words, "strides", ())
    if len(image) != len(kernel) or not math.prod(strides):
        return None
    channels = kernel[-1]
    last = str(attribute(words, "data_format", "NHWC")).endswith("C")
    places = math.prod(image[1:-1] if last else image[2:])
    return math.ceil(image[0] * places / math.prod(strides)) * channels * _item(words[0])


def _depthwise(words: Sequence[Any]) -> int | None:
    multiplier = shape_of(words[1])[-1:]
    return bytes_of(words[0]) * math.prod(multiplier)


def _sizes_given(place: int) -> Callable[[Sequence[Any]], int | None]:
    def need(words: Sequence[Any]) -> int | None:
        shape = _numbers(words[place])
        return None if shape is None else math.prod(shape) * _item(words[2])

    return need


def _inputs(times: int) -> Callable[[Sequence[Any]], int | None]:
    def need(words: Sequence[Any]) -> int | None:
        return times * sum(bytes_of(word) for word in words if hasattr(word, "shape"))

    return need


def _shuffle(words: Sequence[Any]) -> int | None:
    size = words[1]
    count = int(size.numpy()) if hasattr(size, "numpy") else size
    return count * _ELEMENT_OF_SHUFFLE if isinstance(count, int) and count > 0 else None


KNOWN: Final[dict[str, Callable[[Sequence[Any]], int | None]]] = {
    "Fill": _fill,
    **dict.fromkeys(
        (
            "RandomStandardNormal",
            "RandomUniform",
            "TruncatedNormal",
            "StatelessRandomNormal",
            "StatelessRandomNormalV2",
            "StatelessRandomUniform",
            "StatelessRandomUniformV2",
            "StatelessTruncatedNormal",
            "StatelessTruncatedNormalV2",
        ),
        _random,
    ),
    "BroadcastTo": _broadcast,
    "Tile": _tile,
    "MatMul": _product,
    "BatchMatMulV2": _product,
    "BatchMatMulV3": _product,
}
"""Operations that raise by themselves, but only after TensorFlow has waited ten seconds."""

CRASHING: Final[dict[str, Callable[[Sequence[Any]], int | None]]] = {
    "Conv2D": _convolution,
    "Conv3D": _convolution,
    "DepthwiseConv2dNative": _depthwise,
    "Conv2DBackpropInput": _sizes_given(0),
    "Conv3DBackpropInputV2": _sizes_given(0),
    "DepthwiseConv2dNativeBackpropInput": _sizes_given(0),
    "Conv2DBackpropFilter": _sizes_given(1),
    "Conv3DBackpropFilterV2": _sizes_given(1),
    "DepthwiseConv2dNativeBackpropFilter": _sizes_given(1),
    **dict.fromkeys(
        (
            "MaxPool",
            "MaxPoolGrad",
            "MaxPool3D",
            "MaxPool3DGrad",
            "AvgPool",
            "AvgPoolGrad",
            "AvgPool3D",
            "AvgPool3DGrad",
            "FusedBatchNorm",
            "FusedBatchNormV2",
            "FusedBatchNormV3",
            "FusedBatchNormGrad",
            "FusedBatchNormGradV2",
            "FusedBatchNormGradV3",
            "LRN",
            "LRNGrad",
        ),
        _inputs(_SAME),
    ),
}
"""Operations whose oneDNN kernels crash where their output is refused (TensorFlow 2.21, found by
refusing it); also fused ones made of them in graphs."""

FUSED: Final = frozenset({"MatMul", "BatchMatMulV2", "_FusedMatMul", "_FusedConv2D", "BiasAdd"})
"""In graphs these become fused oneDNN operations; a fused product crashed, one alone did not."""

UNCHECKED: Final[dict[str, Callable[[Sequence[Any]], int | None]]] = {
    "Svd": _inputs(_SVD),
    **dict.fromkeys(
        (
            "MatrixSolve",
            "MatrixSolveLs",
            "MatrixInverse",
            "SelfAdjointEigV2",
            "Eig",
            "MatrixSquareRoot",
            "MatrixLogarithm",
        ),
        _inputs(_DECOMPOSITION),
    ),
    **dict.fromkeys(
        ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"), _inputs(_UNIQUE)
    ),
    **dict.fromkeys(
        ("LookupTableInsertV2", "LookupTableImportV2", "InitializeTableV2"), _inputs(_TABLE)
    ),
    "SerializeTensor": _inputs(_SERIALISED),
    "ShuffleDataset": _shuffle,
    "ShuffleDatasetV2": _shuffle,
    "ShuffleDatasetV3": _shuffle,
    "ShuffleAndRepeatDataset": _shuffle,
    "ShuffleAndRepeatDatasetV2": _shuffle,
}
"""Operations that take memory without looking whether they got it: refused before they begin."""

TEXT: Final = ("String", "Unicode", "Regex", "StaticRegex", "ReduceJoin", "AsString", "Substr")
"""Beginnings of operations on text, whose needs nobody can tell, and which do not look either."""
TEXT_TIMES: Final = 8
"""Splitting ten million short strings into eight took more than seven times their tensor."""

PIPELINES: Final = frozenset(
    {
        *("MakeIterator", "IteratorV2", "OneShotIterator", "AnonymousIteratorV2"),
        *("AnonymousIteratorV3", "IteratorGetNext", "IteratorGetNextSync", "ReduceDataset"),
        *("DatasetToSingleElement", "MultiDeviceIteratorInit", "AnonymousMultiDeviceIteratorV3"),
        *("MultiDeviceIteratorGetNextFromShard",),
    }
)
"""Operations that start threads of an input pipeline."""
