"""checkpoint_segments: a model of the same layers that computes parts of itself again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError
from snugly.training.checkpoint import RecomputedCall, run
from snugly.training.cutting import Step, cut, cut_spans
from snugly.training.eager import Traces
from snugly.training.keras_state import hang_mask, is_only_looking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


def checkpoint_segments(model: Any, segments: int | Iterable[Iterable[Any]]) -> Any:
    """A model of the same layers and weights whose training computes segments of it again.

    ::

        small = snugly.training.checkpoint_segments(model, [["conv1", "bn1"], model.layers[8:15]])
        small.compile("adam", "mse")
        small.fit(x, y)               # trains the weights of `model`

    Of a segment only what goes into it is kept between the passes. Layers that are in no segment
    are kept as ever; those between two layers of a segment are taken into it. A layer that is used
    several times is in its segment with all its uses. The model that was given stays as it is; the
    new one is saved as the plain model, and compiled like the given one, with its optimizer.

    Args:
        model: a Functional or built Sequential model.
        segments: the layers of each segment, or their names; operations such as `x + y`, which are
            no layers, by `model.operations`. Or a number: the model is cut into so many pieces
            where little crosses, and all but the last, which would gain nothing, are recomputed.
    """
    made = same_model(model)
    made.__dict__["call"] = SegmentedCall(made, cut(made, segments))
    return made


def checkpoint_spans(model: Any, spans: Iterable[tuple[int, int]]) -> Any:
    """The same for stretches of the order in which the model's nodes run."""
    made = same_model(model)
    made.__dict__["call"] = SegmentedCall(made, cut_spans(made, spans))
    return made


def has_graph(model: Any) -> bool:
    """Whether a model is made of layers that are connected beforehand, and can be cut."""
    try:
        graph_of(model)
    except InputError:
        return False
    return True


def same_model(model: Any) -> Any:
    """A second model of the same layers and weights, that does the same."""
    return _same_model(model, graph_of(model))


def graph_of(model: Any) -> Any:
    """The Functional model that a model is, or is made of."""
    import keras
    from keras.src.models.functional import Functional

    if isinstance(model, keras.Sequential) and model.built and model.inputs:
        return getattr(model, "_functional", None) or model
    if isinstance(model, Functional):
        return model
    name = getattr(model, "name", repr(model)[:60])
    raise InputError(f"{name} has no graph of layers that could be cut", code="SNG546")


def _same_model(model: Any, source: Any) -> Any:
    """A second model of the same layers, of the same class where that can be had."""
    import keras
    from keras.src.models.functional import Functional, functional_like_constructor

    kind = type(source)
    if kind is not Functional and not functional_like_constructor(kind):
        raise InputError(
            f"{model.name} is of the class {kind.__name__}, which cannot be made of inputs and"
            " outputs",
            code="SNG546",
        )
    made = (keras.Model if kind is Functional else kind)(
        inputs=source._inputs_struct,  # noqa: SLF001  # `inputs` is flat, this is as it was given
        outputs=source._outputs_struct,  # noqa: SLF001
        name=model.name,
    )
    made.trainable = model.trainable
    if getattr(model, "compiled", False):
        made.compile_from_config(model.get_compile_config())
        made.optimizer = model.optimizer
    return made


@dataclass
class _Piece:
    """One segment as a function of what goes into it."""

    step: Step

    @property
    def __name__(self) -> str:
        return "segment"

    def __call__(self, tensors: Sequence[Any], context: Mapping[str, Any]) -> list[Any]:
        values = dict(zip(self.step.inputs, tensors, strict=True))
        run_nodes(self.step, values, context)
        return [values[name] for name in self.step.outputs]


class SegmentedCall(RecomputedCall):
    """Takes the place of a Functional model's `call`: goes through the graph step by step."""

    def __init__(self, model: Any, steps: Sequence[Step]) -> None:
        super().__init__(model)
        self.steps = tuple(steps)
        self.pieces = [_Piece(step) for step in steps]
        self.all_traces = [Traces() for _ in steps]

    def __call__(self, inputs: Any, training: Any = None, mask: Any = None, **more: Any) -> Any:
        """Run the model, its segments so that they run again for their gradients."""
        if is_only_looking():
            return self.plain(inputs, training=training, mask=mask, **more)
        return run_graph(self.layer, self._run, inputs, mask, {"training": training, **more})

    def _run(self, values: dict[int, Any], context: Mapping[str, Any]) -> None:
        for step, piece, traces in zip(self.steps, self.pieces, self.all_traces, strict=True):
            if not step.recomputed:
                run_nodes(step, values, context)
                continue
            found = run(piece, traces, ([values[name] for name in step.inputs], context), {})
            values.update(zip(step.outputs, found, strict=True))
            for name in step.last_used:
                values.pop(name, None)


def run_graph(
    model: Any,
    run: Callable[[dict[int, Any], Mapping[str, Any]], None],
    inputs: Any,
    mask: Any,
    context: Mapping[str, Any],
) -> Any:
    """What a Functional model's `call` does, where `run` goes through the nodes."""
    import keras

    given = model._standardize_inputs(inputs)  # noqa: SLF001  # as its own `call` does
    for tensor, each in zip(given, keras.tree.flatten(mask) or (), strict=False):
        hang_mask(tensor, each)
    values = {id(name): value for name, value in zip(model.inputs, given, strict=True)}
    run(values, context)
    outputs = [values[id(name)] for name in model.outputs]
    packed = keras.tree.pack_sequence_as(model._outputs_struct, outputs)  # noqa: SLF001
    return packed[0] if isinstance(packed, list) and len(packed) == 1 else packed


def run_nodes(step: Step, values: dict[int, Any], context: Mapping[str, Any]) -> None:
    """Run the nodes of a step in order, each with the values of the tensors it is called with."""
    import keras

    for node in step.nodes:
        args, kwargs = node.arguments.fill_in(values)
        for name, value in context.items():
            if value is not None and _takes(node.operation, name):
                kwargs[name] = value
        outputs = node.operation(*args, **kwargs)
        values.update(zip((id(x) for x in node.outputs), keras.tree.flatten(outputs), strict=False))


def _takes(operation: Any, name: str) -> bool:
    """Whether a layer is to be told what was said to the model: `training`, and its like."""
    if name in getattr(operation, "_call_context_args", ()):
        return True
    return name == "training" and getattr(operation, "_call_has_training_arg", False)
