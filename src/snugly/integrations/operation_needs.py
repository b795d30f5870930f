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
BATCH_TIMES: Final = 2
"""The elements, and the batch that they are copied into."""
_PARSED: Final = 2
_DEFAULTS: Final = 5
_FEW: Final = 16


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
    count = _count(words[1])
    return None if count is None else count * _ELEMENT_OF_SHUFFLE


def _batch(words: Sequence[Any]) -> int | None:
    """Elements of known shape, and the batch that they are put together in: what it takes at least.

    The shapes are those of a batch; its first dimension is the number of elements.
    """
    count = _count(words[1])
    shapes = attribute(words, "output_shapes", ())
    items = [kind_bytes(kind) for kind in attribute(words, "output_types", ())]
    items = items or [
        _item(value) for value in _list(words[3])
    ]  # what a padded batch is padded with
    sizes = [_elements(shape) for shape in shapes]
    if count is None or len(sizes) != len(items) or not any(sizes):
        return None
    return BATCH_TIMES * count * sum(size * item for size, item in zip(sizes, items, strict=True))


def _elements(shape: Any) -> int:
    """How many numbers one element of a batch has; 0 where that is not known."""
    if getattr(shape, "rank", None) is None:
        return 0
    inner = shape.as_list()[1:]
    return 0 if None in inner else math.prod(inner)


def _examples(words: Sequence[Any]) -> int | None:
    """Records that are parsed: their dense features, once in C++ and once as tensors."""
    defaults = _list(words[5]) if len(words) > _DEFAULTS else []
    shapes = attribute(words, "dense_shapes", ())
    numbers = [math.prod(size.size for size in getattr(shape, "dim", ())) for shape in shapes]
    each = sum(n * _item(value) for n, value in zip(numbers, defaults, strict=False))
    return _PARSED * math.prod(shape_of(words[0])) * each or None


def _text_sum(words: Sequence[Any]) -> int | None:
    """`a + b` of text: as many results as the larger has, each with all of a short input's text."""
    if getattr(getattr(words[0], "dtype", None), "name", "") != "string":
        return None
    count = max(math.prod(shape_of(word)) for word in words[:2])
    long = sum(_longest(word) for word in words[:2])
    return count * (long + 2 * _STRING)


def _longest(tensor: Any) -> int:
    """The longest text of a few; of many it is not asked, because that takes a copy of all."""
    if math.prod(shape_of(tensor)) > _FEW or not hasattr(tensor, "numpy"):
        return 0
    values = tensor.numpy()
    texts = [values] if isinstance(values, bytes) else values.reshape(-1).tolist()
    return max((len(text) for text in texts), default=0)


def _count(size: Any) -> int | None:
    count = int(size.numpy()) if hasattr(size, "numpy") else size
    return count if isinstance(count, int) and count > 0 else None


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def kind_bytes(kind: Any) -> int:
    """Bytes of one element of a kind; of text its pointer."""
    if getattr(kind, "name", "") == "string":
        return _STRING
    size = getattr(kind, "size", None)
    return size if isinstance(size, int) else _FLOAT


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
    **dict.fromkeys(
        ("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset", "PaddedBatchDatasetV2"), _batch
    ),
    "ParseExampleV2": _examples,
    "Add": _text_sum,  # numbers are added by AddV2
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
