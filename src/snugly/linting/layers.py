"""Layers: the shapes that flow through Keras layers whose sizes are written down.

A layer that is not known here makes the shape unknown; nothing is guessed beyond it. Shapes are
without the batch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from snugly.linting.folding import argument, as_int, fold
from snugly.linting.names import keras_name
from snugly.linting.shapes import shape_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

Shape: TypeAlias = tuple[int | None, ...] | None

FLOAT_BYTES: Final = 4
_DEPTH: Final = 60

_KEEPING: Final = frozenset(
    {
        *("Activation", "ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax", "Dropout"),
        *("SpatialDropout1D", "SpatialDropout2D", "GaussianNoise", "GaussianDropout"),
        *("BatchNormalization", "LayerNormalization", "GroupNormalization", "Rescaling"),
        *("Normalization", "RandomFlip", "RandomRotation", "RandomZoom", "ActivityRegularization"),
        *("RandomContrast", "RandomBrightness", "RandomTranslation", "Masking", "Identity"),
    }
)
_CONVOLUTIONS: Final = {
    f"{kind}{number}D": number
    for kind in ("Conv", "SeparableConv", "Convolution")
    for number in (1, 2, 3)
}
_POOLINGS: Final = {
    f"{kind}{number}D": number
    for kind in ("MaxPooling", "MaxPool", "AveragePooling", "AvgPool")
    for number in (1, 2, 3)
}
_GLOBAL: Final = ("GlobalAveragePooling", "GlobalMaxPooling", "GlobalAvgPool", "GlobalMaxPool")
_RECURRENT: Final = frozenset({"LSTM", "GRU", "SimpleRNN"})


@dataclass(frozen=True, slots=True)
class Placed:
    """One layer in a model, with the shape that reaches it and the layer before it."""

    call: ast.Call
    name: str
    entering: Shape
    before: str | None


def placed_layers(program: Program) -> list[Placed]:
    """Every layer whose place in a model can be seen."""
    key = ("placed", program.tree)
    if key not in program.remembered:
        program.remembered[key] = list(_placed_layers(program))
    return program.remembered[key]  # type: ignore[return-value]


def _placed_layers(program: Program) -> Iterator[Placed]:
    for call in program.calls:
        if keras_name(program.name_of_call(call)) == "Sequential":
            layers = _listed(program, call) or _added(program, call)
            shape: Shape = None
            before: str | None = None
            for layer in layers:
                name = keras_name(program.name_of_call(layer)) or ""
                is_input = before is None or name in {"Input", "InputLayer"}
                own = _own_input(program, layer, name) if is_input else None
                entering = own if own is not None else shape
                yield Placed(layer, name, entering, before)
                shape = leaving(program, layer, name, entering)
                before = name
        elif isinstance(call.func, ast.Call) and call.args:
            name = keras_name(program.name_of_call(call.func))
            if name is not None:
                entering, before = _flowing(program, call.args[0], call.lineno, _DEPTH)
                yield Placed(call.func, name, entering, before)


def leaving(program: Program, layer: ast.Call, name: str, entering: Shape) -> Shape:  # noqa: C901, PLR0911
    """The shape behind a layer."""
    if name in {"Input", "InputLayer"}:
        return _own_input(program, layer, name)
    if name == "Embedding":
        width = as_int(fold(program, argument(layer, 1, "output_dim")))
        return (*(entering if entering is not None else (None,)), width)
    if entering is None:
        return None
    if name in _KEEPING:
        return entering
    if name == "Flatten":
        return (_product(entering),)
    if name == "Dense":
        return (*entering[:-1], as_int(fold(program, argument(layer, 0, "units"))))
    if name in _CONVOLUTIONS:
        return _convolved(program, layer, entering, _CONVOLUTIONS[name])
    if name in _POOLINGS:
        return _pooled(program, layer, entering, _POOLINGS[name])
    if name.startswith(_GLOBAL):
        return (entering[-1],)
    if name in {"UpSampling2D", "UpSampling1D"}:
        times = _spread(fold(program, argument(layer, 0, "size")) or 2, len(entering) - 1)
        return (*(_times(a, b) for a, b in zip(entering[:-1], times, strict=True)), entering[-1])
    if name == "Reshape":
        return shape_from(fold(program, argument(layer, 0, "target_shape")))
    if name in _RECURRENT:
        units = as_int(fold(program, argument(layer, 0, "units")))
        sequences = fold(program, argument(layer, None, "return_sequences"))
        return (entering[0], units) if sequences is True else (units,)
    return None


def weight_bytes(program: Program, placed: Placed) -> int | None:
    """What a layer's largest weight takes in float32, where it can be computed."""
    if placed.name == "Embedding":
        rows = as_int(fold(program, argument(placed.call, 0, "input_dim")))
        width = as_int(fold(program, argument(placed.call, 1, "output_dim")))
        return None if rows is None or width is None else rows * width * FLOAT_BYTES
    if placed.name == "Dense":
        units = as_int(fold(program, argument(placed.call, 0, "units")))
        features = placed.entering[-1] if placed.entering else None
        return None if units is None or features is None else units * features * FLOAT_BYTES
    return None


def _listed(program: Program, call: ast.Call) -> list[ast.Call]:
    given = argument(call, 0, "layers")
    if isinstance(given, ast.Name):
        bindings = program.bindings(given)
        given = bindings[0].value if len(bindings) == 1 else None  # type: ignore[assignment]
    if not isinstance(given, ast.List | ast.Tuple):
        return []
    return [one for one in given.elts if isinstance(one, ast.Call)]


def _added(program: Program, call: ast.Call) -> list[ast.Call]:
    """`model = Sequential()` and then `model.add(…)`, in the order of the source."""
    assigned = program.parents.get(call)
    if not isinstance(assigned, ast.Assign) or not isinstance(assigned.targets[0], ast.Name):
        return []
    target = assigned.targets[0].id
    home = program.function_of(call) or program.tree
    layers: list[ast.Call] = []
    for node in program.body_nodes(home):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "add"
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == target
            and node.lineno > call.lineno
            and node.args
        ):
            if not isinstance(node.args[0], ast.Call):
                return layers
            layers.append(node.args[0])
    return layers


def _flowing(program: Program, node: ast.AST, line: int, depth: int) -> tuple[Shape, str | None]:  # noqa: PLR0911 - one case a line
    """The shape of an expression in a functional model, and the layer that it comes from."""
    if depth <= 0:
        return None, None
    if isinstance(node, ast.Name):
        above = [one for one in program.bindings(node) if one.line < line and one.how == "value"]
        if not above:
            return None, None
        latest = max(above, key=lambda one: one.line)
        assert latest.value is not None
        return _flowing(program, latest.value, latest.line, depth - 1)
    if not isinstance(node, ast.Call):
        return None, None
    name = keras_name(program.name_of_call(node))
    if name == "Input":
        return _own_input(program, node, name), name
    if isinstance(node.func, ast.Call) and node.args:
        layer = keras_name(program.name_of_call(node.func))
        if layer is not None:
            entering, _ = _flowing(program, node.args[0], line, depth - 1)
            return leaving(program, node.func, layer, entering), layer
    return None, None


def _own_input(program: Program, layer: ast.Call, name: str) -> Shape:
    if name in {"Input", "InputLayer"}:
        given = argument(layer, 0, "shape", "input_shape")
    else:
        given = argument(layer, None, "input_shape")
        dimension = argument(layer, None, "input_dim")
        if given is None and dimension is not None and name != "Embedding":
            return (as_int(fold(program, dimension)),)
        if name == "Embedding":
            return shape_from(fold(program, argument(layer, None, "input_length")))
    if given is None:
        batched = fold(program, argument(layer, None, "batch_input_shape", "batch_shape"))
        return shape_from(batched[1:]) if isinstance(batched, tuple) else None
    value = fold(program, given)
    return shape_from(value) if isinstance(value, tuple) else None


def _convolved(program: Program, layer: ast.Call, entering: Shape, rank: int) -> Shape:
    assert entering is not None
    if len(entering) != rank + 1 or fold(program, argument(layer, None, "data_format")) == (
        "channels_first"
    ):
        return None
    filters = as_int(fold(program, argument(layer, 0, "filters")))
    kernel = _spread(fold(program, argument(layer, 1, "kernel_size")), rank)
    strides_given = argument(layer, 2, "strides")
    strides = _spread(1 if strides_given is None else fold(program, strides_given), rank)
    padding = fold(program, argument(layer, 3, "padding")) or "valid"
    return (*_windowed(entering[:-1], kernel, strides, padding), filters)


def _pooled(program: Program, layer: ast.Call, entering: Shape, rank: int) -> Shape:
    assert entering is not None
    if len(entering) != rank + 1:
        return None
    size_given = argument(layer, 0, "pool_size")
    size = _spread(2 if size_given is None else fold(program, size_given), rank)
    strides_given = argument(layer, 1, "strides")
    strides = size if strides_given is None else _spread(fold(program, strides_given), rank)
    padding = fold(program, argument(layer, 2, "padding")) or "valid"
    return (*_windowed(entering[:-1], size, strides, padding), entering[-1])


def _windowed(
    places: tuple[int | None, ...],
    window: tuple[int | None, ...],
    strides: tuple[int | None, ...],
    padding: object,
) -> tuple[int | None, ...]:
    result: list[int | None] = []
    for place, size, stride in zip(places, window, strides, strict=True):
        if place is None or size is None or not stride:
            result.append(None)
        elif padding == "same":
            result.append(-(-place // stride))
        else:
            result.append(max((place - size) // stride + 1, 0))
    return tuple(result)


def _spread(value: object, rank: int) -> tuple[int | None, ...]:
    number = as_int(value)
    if number is not None:
        return (number,) * rank
    if isinstance(value, tuple) and len(value) == rank:
        return tuple(as_int(one) for one in value)
    return (None,) * rank


def _times(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left * right


def _product(shape: tuple[int | None, ...]) -> int | None:
    result = 1
    for one in shape:
        if one is None:
            return None
        result *= one
    return result
