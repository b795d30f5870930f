"""The smaller model: its layers made anew with fewer channels, and what is left of the weights."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError
from snugly.training.compiling import compile_anew
from snugly.training.compression.following import Call, follow
from snugly.training.compression.rules import has_rule
from snugly.training.segments import graph_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from snugly.training.compression.ranking import Choice
    from snugly.training.compression.tracing import Anatomy


@dataclass(slots=True)
class _Rebuilding:
    found: Anatomy
    removed: frozenset[int]
    copies: dict[int, Any] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def left(self, channels: Any) -> np.ndarray:
        """The places of those channels that stay."""
        import numpy as np

        roots = self.found.sets.roots(channels)
        return np.flatnonzero(~np.isin(roots, np.array(sorted(self.removed), dtype=np.int64)))

    def apply(self, call: Call) -> Sequence[Any]:
        """Call the copy of a layer where the layer was called."""
        import keras

        operation = call.operation
        if not isinstance(operation, keras.layers.Layer):
            return keras.tree.flatten(operation(*call.arguments, **call.options))
        first = id(operation) not in self.copies
        copy = self.copies.get(id(operation)) or self._copy(call)
        self.copies[id(operation)] = copy
        outputs = keras.tree.flatten(copy(*call.arguments, **call.options))
        if first:
            self._fill(operation, copy)
        return outputs

    def _copy(self, call: Call) -> Any:
        layer = call.operation
        name = layer.name
        if name in self.names:  # models inside may have layers of the same name
            name = "_".join((*call.inside, layer.name))
        self.names.add(name)
        return copy_of(layer, {"name": name, **self._settings(layer)})

    def _settings(self, layer: Any) -> dict[str, Any]:
        """The settings of a layer that count channels, as they are now."""
        resized = self.found.resized.get(id(layer))
        if resized is None:
            return {}
        count = len(self.left(resized.channels))
        if resized.place is None:
            return {resized.setting: count}
        sizes = list(getattr(layer, resized.setting))
        sizes[resized.place] = count
        return {resized.setting: tuple(sizes)}

    def _fill(self, layer: Any, copy: Any) -> None:
        """Give a copy what is left of the weights."""
        import numpy as np

        if copy is layer:
            return
        if len(copy.weights) != len(layer.weights):
            raise _cannot_copy(layer, "its copy has other weights")
        for variable, new in zip(layer.weights, copy.weights, strict=True):
            value: Any = variable.numpy()
            for axis, channels in self.found.weights.get(id(variable), {}).items():
                value = np.take(value, self.left(channels), axis=axis)
            if tuple(value.shape) != tuple(new.shape):
                raise _cannot_copy(
                    layer, f"{variable.path} would be {new.shape}, not {value.shape}"
                )
            new.assign(value)
        for name in _settings_like(layer, "_initializer"):
            setattr(copy, name, getattr(layer, name))
        for one, other in zip(layer._flatten_layers(), copy._flatten_layers(), strict=False):  # noqa: SLF001
            other.trainable = one.trainable
        if hasattr(copy, "finalize_state"):  # Normalization computes from what it was given
            copy.finalize_state()


def rebuild(found: Anatomy, choice: Choice) -> Any:
    """The model without the channels that were not chosen; compiled like the one that was given."""
    import keras

    model, work = found.model, _Rebuilding(found, choice.removed)
    source = graph_of(model)
    values = {id(tensor): _input_like(tensor) for tensor in source.inputs}
    follow(model, values, work.apply, _enter, lambda value, _: value)
    if type(model) is keras.Sequential and not _has_models(model):
        first = next(iter(values.values()))
        copies = [work.copies[id(layer)] for layer in model.layers]
        made: Any = keras.Sequential([first._keras_history.operation, *copies], name=model.name)  # noqa: SLF001
    else:
        inputs = keras.tree.map_structure(lambda x: values[id(x)], source._inputs_struct)  # noqa: SLF001
        outputs = keras.tree.map_structure(lambda x: values[id(x)], source._outputs_struct)  # noqa: SLF001
        made = class_of(model)(inputs=inputs, outputs=outputs, name=model.name)
        made.output_names = list(source.output_names)  # losses and metrics are told apart by them
    if [tuple(x.shape) for x in made.outputs] != [tuple(x.shape) for x in source.outputs]:
        raise _cannot_copy(model, "its outputs would be of another shape")
    made.dtype_policy = model.dtype_policy
    compile_anew(made, model)
    return made


def class_of(model: Any) -> Any:
    """The class of a model that can be made of inputs and outputs; an error where it has another.

    What a class of the user's own does beside would be lost.
    """
    import keras
    from keras.src.models.functional import Functional, functional_like_constructor

    kind = type(model)
    if kind in {keras.Sequential, Functional}:
        return keras.Model
    if issubclass(kind, Functional) and functional_like_constructor(kind):
        return kind
    raise _cannot_copy(model, f"its class {kind.__name__} is not made of inputs and outputs alone")


def copy_of(layer: Any, settings: dict[str, Any]) -> Any:
    """A layer of the same configuration but for some settings, without its weights."""
    import keras

    if isinstance(layer, keras.layers.Lambda):  # its configuration would carry code
        return keras.layers.Lambda(
            layer.function,
            output_shape=layer._output_shape,  # noqa: SLF001
            mask=layer.mask,
            arguments=layer.arguments,
            dtype=layer.dtype_policy,
            name=settings["name"],
        )
    if hasattr(layer, "get_vocabulary"):
        return layer  # a lookup has its table, and nothing to train
    # Weights are filled in at once: nothing is drawn, and no initialiser sees a new shape.
    zeros = _settings_like(layer, "_initializer")
    # The very functions of the layer, which need not be registered with Keras.
    shared = _settings_like(layer, "_regularizer", "_constraint", "activation")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a lambda is looked at here, and not saved
            configuration = {**layer.get_config(), **settings}
        # Some constructors refuse what every layer has: SpatialDropout2D, an activity_regularizer.
        replaced = dict.fromkeys(zeros, "zeros") | dict.fromkeys(shared)
        configuration |= {name: replaced[name] for name in replaced if name in configuration}
        made = type(layer).from_config(configuration)
        for name in shared:
            setattr(made, name, getattr(layer, name))
    except (TypeError, ValueError, NotImplementedError) as problem:
        raise _cannot_copy(layer, str(problem).partition("\n")[0][:200]) from problem
    return made


def _settings_like(layer: Any, *endings: str) -> list[str]:
    """The settings of a layer whose names end so; of layers whose rules are known, no others."""
    import keras

    if not has_rule(layer):
        return []
    held = [name for name in vars(layer) if name.endswith(endings)]
    # A layer that is an activation may have weights, and is copied with the rest.
    return [name for name in held if not isinstance(getattr(layer, name), keras.layers.Layer)]


def _input_like(tensor: Any) -> Any:
    operation = tensor._keras_history.operation  # noqa: SLF001
    return type(operation).from_config(operation.get_config()).output


def _enter(model: Any, given: Any) -> Sequence[Any]:
    return model._standardize_inputs(given)  # noqa: SLF001  # as its own `call` does


def _has_models(model: Any) -> bool:
    import keras

    return any(isinstance(layer, keras.Model) for layer in model.layers)


def _cannot_copy(layer: Any, because: str) -> InputError:
    return InputError(f"{layer.name} cannot be made anew: {because}", code="SNG531")
