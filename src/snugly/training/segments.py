"""checkpoint_segments: a model of the same layers that computes parts of itself again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError
from snugly.training.checkpoint import RecomputedCall, run
from snugly.training.compiling import compile_like
from snugly.training.cutting import ORDER, Step, cut, cut_spans
from snugly.training.eager import Traces
from snugly.training.keras_state import hang_mask, is_only_looking
from snugly.training.normalising import is_lean, lean_calls, mark_lean

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
        _class_of(model, graph_of(model))
    except InputError:
        return False
    return True


def same_model(model: Any) -> Any:
    """A second model of the same layers and weights, that does the same."""
    return normalising_like(model, _same_model(model, graph_of(model)))


def lean_model(model: Any) -> Any:
    """A second model of the same layers whose batch normalisation has a leaner gradient."""
    made = _same_model(model, graph_of(model))
    mark_lean(made)
    return normalising_like(made, made)


def normalising_like(model: Any, made: Any) -> Any:
    """What was made of a model, normalising as that does."""
    if is_lean(model):
        mark_lean(made)
        made.__dict__["call"] = SegmentedCall(made, cut_spans(made, ()))
    return made


def graph_of(model: Any) -> Any:
    """The Functional model that a model is, or is made of."""
    import keras
    from keras.src.models.functional import Functional

    name = getattr(model, "name", repr(model)[:60])
    plain = getattr(model, "__dict__", {}).get("call")
    for kind in (keras.Sequential, Functional):
        # What a `call` of the user's own does beside running the layers would be lost.
        if isinstance(model, kind) and (
            type(model).call is not kind.call or not isinstance(plain, RecomputedCall | None)
        ):
            raise InputError(
                f"{name} has a `call` of its own: its graph of layers is not all that it does",
                code="SNG546",
            )
    if isinstance(model, keras.Sequential) and model.built and model.inputs:
        return getattr(model, "_functional", None) or model
    if isinstance(model, Functional):
        return model
    raise InputError(f"{name} has no graph of layers that could be cut", code="SNG546")


def _same_model(model: Any, source: Any) -> Any:
    """A second model of the same layers, of the same class where that can be had."""
    made = _class_of(model, source)(
        inputs=source._inputs_struct,  # noqa: SLF001  # `inputs` is flat, this is as it was given
        outputs=source._outputs_struct,  # noqa: SLF001
        name=model.name,
    )
    made.output_names = list(source.output_names)  # losses and metrics are told apart by them
    if ORDER in source.__dict__:
        made.__dict__[ORDER] = source.__dict__[ORDER]  # the nodes are the same ones
    made.trainable = model.trainable
    made.dtype_policy = model.dtype_policy  # half precision scales losses by it
    compile_like(made, model)
    return made


def _class_of(model: Any, source: Any) -> Any:
    """The class that a second model is made with: that of the first, or one that does the same."""
    import keras
    from keras.src.models.functional import Functional, functional_like_constructor

    kind = type(source)
    if kind is Functional:
        return keras.Model
    if functional_like_constructor(kind):
        return kind
    changed = _changed_by(kind, Functional)
    if not changed:  # it builds its graph in a constructor of its own, and does nothing else
        return keras.Model
    raise InputError(
        f"{model.name} is of the class {kind.__name__}, which has a {changed[0]} of its own and"
        " cannot be made of inputs and outputs",
        code="SNG546",
    )


def _changed_by(kind: type, base: type) -> list[str]:
    """What of a model's behaviour a class has in another way than the one it is made from."""
    between = kind.__mro__[: kind.__mro__.index(base)]
    names = {name for each in between for name in vars(each) if hasattr(base, name)}
    configuration = {"get_config", "from_config"}
    return sorted(name for name in names - configuration if not name.startswith("__"))


@dataclass
class _Piece:
    """One segment as a function of what goes into it."""

    step: Step
    is_lean: bool

    @property
    def __name__(self) -> str:
        return "segment"

    def __call__(self, tensors: Sequence[Any], context: Mapping[str, Any]) -> list[Any]:
        values = dict(zip(self.step.inputs, tensors, strict=True))
        operations = [node.operation for node in self.step.nodes] if self.is_lean else ()
        with lean_calls(operations):
            run_nodes(self.step, values, context)
        return [values[name] for name in self.step.outputs]


class SegmentedCall(RecomputedCall):
    """Takes the place of a Functional model's `call`: goes through the graph step by step."""

    def __init__(self, model: Any, steps: Sequence[Step]) -> None:
        super().__init__(model)
        self.steps = tuple(steps)
        self.pieces = [_Piece(step, is_lean(model)) for step in steps]
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
    with lean_calls(model.operations if is_lean(model) else ()):
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
