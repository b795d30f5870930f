"""The anatomy of a model: which channels each layer makes, and where its weights have them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError, suggest
from snugly.training.compression.channels import ChannelSets, Traced
from snugly.training.compression.following import Call, follow, operations_of
from snugly.training.segments import graph_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

LEAVES: Final = "they leave the model"


@dataclass(slots=True)
class Made:
    """The channels that a layer makes, and the weights that say how much each one matters."""

    layer: Any
    channels: np.ndarray
    kernel: Any
    axis: int


@dataclass(slots=True)
class Resized:
    """A setting of a layer that is a number of channels: all of it, or one of several numbers."""

    layer: Any
    setting: str
    channels: np.ndarray
    place: int | None = None


@dataclass(slots=True)
class Anatomy:
    """What was found out about a model's channels by following its graph."""

    model: Any
    sets: ChannelSets = field(default_factory=ChannelSets)
    made: dict[int, Made] = field(default_factory=dict)
    """By the id of the layer."""
    weights: dict[int, dict[int, np.ndarray]] = field(default_factory=dict)
    """By the id of a variable: the channels along each of its axes."""
    resized: dict[int, Resized] = field(default_factory=dict)
    scales: list[tuple[Any, np.ndarray]] = field(default_factory=list)
    """Scales of batch normalisation, with the channels along them."""
    notes: list[tuple[np.ndarray, str]] = field(default_factory=list)
    """What is to be said where any of these channels goes."""
    opaque: dict[str, str] = field(default_factory=dict)
    """Layers with weights whose channels are left alone, and why."""

    def entering(self, value: Traced, axis: int, who: str) -> np.ndarray:
        """The channels that a layer finds along an axis; others along another axis are to stay."""
        if value.channels is not None and value.axis == axis:
            return value.channels
        if value.channels is not None:
            self.sets.keep(value.channels, f"{who} takes another axis for its channels")
        return self.sets.fixed(int(value.shape[axis] or 0))

    def make(self, layer: Any, kernel: Any, axis: int, setting: str) -> np.ndarray:
        """The channels that a layer makes: the same ones each time that it is called."""
        if id(layer) not in self.made:
            channels = self.sets.fresh(int(kernel.shape[axis]))
            self.made[id(layer)] = Made(layer, channels, kernel, axis)
            self.resize(layer, setting, channels)
        return self.made[id(layer)].channels

    def weigh(self, layer: Any, variable: Any, axes: dict[int, np.ndarray]) -> None:
        """Say which channels lie along the axes of a weight; a second call joins with the first."""
        if variable is None:
            return
        known = self.weights.setdefault(id(variable), {})
        for axis, channels in axes.items():
            if axis in known:
                self.sets.join(known[axis], channels, f"{layer.name} is called in several places")
            known[axis] = channels

    def resize(
        self, layer: Any, setting: str, channels: np.ndarray, place: int | None = None
    ) -> None:
        """Say that a setting of a layer counts these channels."""
        known = self.resized.get(id(layer))
        if known is not None:
            self.sets.join(known.channels, channels, f"{layer.name} is called in several places")
        self.resized[id(layer)] = Resized(layer, setting, channels, place)

    def leave_alone(self, call: Call, values: Iterable[Traced], because: str) -> list[Traced]:
        """Keep all channels that go into a layer, and those that come out."""
        layer = call.operation
        for value in values:
            self.sets.keep(value.channels, f"{layer.name} {because}")
        if getattr(layer, "weights", None):
            self.opaque[layer.name] = because
        for variable in getattr(layer, "weights", ()):
            for channels in self.weights.get(id(variable), {}).values():
                self.sets.keep(channels, f"{layer.name} {because}")
        return [Traced(tuple(tensor.shape)) for tensor in call.tensors]


def anatomy_of(model: Any, protect: Sequence[Any] = ()) -> Anatomy:
    """Follow a model's graph, and find out which channels go together."""
    from snugly.training.compression.rules import apply_rule

    source = _graph_of(model)
    found = Anatomy(model)
    _check_sharing(model)
    given: dict[int, list[Traced]] = {}

    def apply(call: Call) -> list[Traced]:
        outputs = apply_rule(found, call)
        given.setdefault(id(call.operation), []).extend(outputs)
        return outputs

    values = {id(tensor): Traced(tuple(tensor.shape)) for tensor in source.inputs}
    follow(model, values, apply, _enter(found), _leave)
    for tensor in source.outputs:
        found.sets.keep(values[id(tensor)].channels, LEAVES, above_all=True)
    for layer in protected_layers(model, protect):
        for value in given.get(id(layer), ()):
            found.sets.keep(value.channels, "they are protected")
    return found


def _graph_of(model: Any) -> Any:
    import keras

    if not isinstance(model, keras.Model):
        raise InputError(
            f"what is pruned is a Keras model, not {type(model).__name__}",
            code="SNG530",
            hint="load a file first: keras.models.load_model(path)",
        )
    try:
        return graph_of(model)
    except InputError as problem:
        raise InputError(
            problem.message.replace("could be cut", "could be followed"),
            code="SNG531",
            hint="give a Functional model, or a Sequential one that is built; of a subclassed"
            " model, prune such parts",
        ) from problem


def protected_layers(model: Any, protect: Sequence[Any]) -> list[Any]:
    """The layers that were named, or given; of a model inside, all of its layers."""
    if isinstance(protect, str) or not hasattr(protect, "__iter__"):
        protect = (protect,)
    operations = list(operations_of(model))
    names = {operation.name for operation, _ in operations}
    names.update(name for _, inside in operations for name in inside)
    chosen = []
    for each in protect:
        name = each if isinstance(each, str) else getattr(each, "name", repr(each)[:60])
        if name not in names:
            raise InputError(
                f"{model.name} has no layer {name!r} to protect",
                code="SNG530",
                hint=suggest(str(name), names) or "name layers as model.summary() does",
            )
        chosen += [layer for layer, inside in operations if name in {layer.name, *inside}]
    return chosen


def _check_sharing(model: Any) -> None:
    """Refuse a weight that two layers have: cut for one, it would not fit the other."""
    owners: dict[int, str] = {}
    for layer, _ in operations_of(model):
        for variable in {id(each): each for each in getattr(layer, "weights", ())}:
            if variable in owners:
                raise InputError(
                    f"{owners[variable]} and {layer.name} share a weight, so neither can be cut",
                    code="SNG530",
                    hint="use one layer in both places, or give each weights of its own",
                )
            owners[variable] = layer.name


def _enter(found: Anatomy) -> Any:
    import keras

    def enter(inner: Any, given: Any) -> list[Traced]:
        struct = inner._inputs_struct  # noqa: SLF001  # `inputs` is flat, this is as it was given
        if isinstance(struct, dict) and isinstance(given, dict):
            given = {name: given[name] for name in struct}
        values = [x for x in keras.tree.flatten(given) if isinstance(x, Traced)]
        expected = [tuple(tensor.shape) for tensor in inner.inputs]
        if [len(value.shape) for value in values] == [len(shape) for shape in expected]:
            return values
        for value in values:  # Keras adds or drops a dimension here
            found.sets.keep(value.channels, f"{inner.name} takes them in another shape")
        return [Traced(shape) for shape in expected]

    return enter


def _leave(value: Traced, outer: Any) -> Traced:
    """The model inside may have been made for open sizes; the call knows more."""
    return replace(value, shape=tuple(outer.shape))
