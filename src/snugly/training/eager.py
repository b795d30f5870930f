"""Recomputation where there is no graph: the block is traced, and runs as a function."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError
from snugly.training.keras_state import Scopes, hang_mask, losses_apart, mask_of, take_mask_off
from snugly.training.recomputation import run_recomputed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

_THRESHOLD = "_EAGER_CONST_THRESHOLD"
"""Up to how many elements a tensor is taken into a graph as a constant, TF 2.21."""

_KEPT = 32
"""Traces of one block that are kept: one per combination of arguments that are no tensors."""


@dataclass(frozen=True)
class _Result:
    """How what a trace gives is put together again."""

    form: Any
    rest: list[Any]
    """Its leaves, but for the tensors."""
    places: tuple[int, ...]
    """Which leaves are tensors."""
    masked: tuple[int, ...]
    """Which of those tensors have a mask."""
    layers: tuple[Any, ...]
    """Which layer added each loss."""
    bared: tuple[int, ...]
    """Which of the tensors that went in have lost their mask on the way."""


@dataclass
class Traces:
    """The traces of one block."""

    known: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a function now, and again when its gradient is asked for."""
        import tensorflow as tf

        arguments = tf.nest.map_structure(_as_tensor, (args, kwargs))
        leaves = tf.nest.flatten(arguments, expand_composites=True)
        places = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, tf.Tensor))
        tensors = [leaves[i] for i in places]
        masks = [mask_of(tensor) for tensor in tensors]
        masked = tuple(i for i, mask in enumerate(masks) if mask is not None)
        form = _form(arguments)
        key = (str(form), _key(leaves), places, masked, Scopes.current().key())
        trace = self.known.get(key)
        if trace is None:
            rest = [None if i in places else leaf for i, leaf in enumerate(leaves)]
            trace = self.known[key] = _Trace(function, form, rest, places, masked)
            if len(self.known) > _KEPT:
                self.known.popitem(last=False)
        self.known.move_to_end(key)
        return trace([*tensors, *(masks[i] for i in masked)])

    def __deepcopy__(self, memo: Any) -> Traces:
        return Traces()  # a copied layer has variables of its own, which these do not know

    def __reduce__(self) -> Any:
        return Traces, ()


class _Trace:
    """One block, traced for arguments of one form."""

    def __init__(
        self,
        function: Callable[..., Any],
        form: Any,
        rest: list[Any],
        places: tuple[int, ...],
        masked: tuple[int, ...],
    ) -> None:
        import tensorflow as tf

        self._function, self._form = function, form
        self._rest, self._places, self._masked = rest, places, masked
        self._results: list[_Result] = []
        self._traced = tf.function(self._trace, autograph=False, reduce_retracing=True)

    def __call__(self, tensors: list[Any]) -> Any:
        import tensorflow as tf

        try:
            with _closed_over_by_reference():
                number, *outputs = self._traced(tensors)
        except (NotImplementedError, TypeError, AttributeError) as problem:
            if isinstance(problem, InputError) or "numpy" not in str(problem):
                raise
            raise InputError(
                f"a checkpointed block cannot be traced: {str(problem).splitlines()[0]}",
                code="SNG545",
            ) from problem
        result = self._results[int(number)]
        count, hung = len(result.places), len(result.masked)
        for place, mask in zip(result.masked, outputs[count : count + hung], strict=True):
            hang_mask(outputs[place], mask)
        for place in result.bared:
            take_mask_off(tensors[place])
        for layer, loss in zip(result.layers, outputs[count + hung :], strict=True):
            layer.add_loss(loss)
        leaves = list(result.rest)
        for place, output in zip(result.places, outputs, strict=False):
            leaves[place] = output
        return tf.nest.pack_sequence_as(result.form, leaves, expand_composites=True)

    def _trace(self, tensors: list[Any]) -> list[Any]:
        import tensorflow as tf

        leaves = list(self._rest)
        for place, tensor in zip(self._places, tensors, strict=False):
            leaves[place] = tensor
        for place, mask in zip(self._masked, tensors[len(self._places) :], strict=True):
            hang_mask(tensors[place], mask)
        args, kwargs = tf.nest.pack_sequence_as(self._form, leaves, expand_composites=True)
        with losses_apart() as losses:
            result = run_recomputed(self._function, args, kwargs)
        flat = tf.nest.flatten(result, expand_composites=True)
        places = tuple(i for i, leaf in enumerate(flat) if isinstance(leaf, tf.Tensor))
        outputs = [flat[i] for i in places]
        masks = [mask_of(output) for output in outputs]
        masked = tuple(i for i, mask in enumerate(masks) if mask is not None)
        layers = tuple(layer for layer, _ in losses)
        bared = tuple(place for place in self._masked if mask_of(tensors[place]) is None)
        kept = [None if i in places else leaf for i, leaf in enumerate(flat)]
        self._results.append(_Result(_form(result), kept, places, masked, layers, bared))
        added = [loss for _, loss in losses]
        number = tf.constant(len(self._results) - 1)
        return [number, *outputs, *(masks[i] for i in masked), *added]


@contextmanager
def _closed_over_by_reference() -> Iterator[None]:
    """Let a trace take in small tensors like large ones: as constants they have no gradient."""
    from tensorflow.core.function.capture import capture_container

    before = getattr(capture_container, _THRESHOLD, None)
    if before is not None:
        setattr(capture_container, _THRESHOLD, -1)
    try:
        yield
    finally:
        if before is not None:
            setattr(capture_container, _THRESHOLD, before)


def _as_tensor(leaf: Any) -> Any:
    """Arrays as tensors, or each array would be a trace of its own."""
    import numpy as np
    import tensorflow as tf

    return tf.convert_to_tensor(leaf) if isinstance(leaf, np.ndarray) else leaf


def _form(structure: Any) -> Any:
    """A structure without its tensors: what is made of several keeps its kind, the rest is None."""
    import tensorflow as tf

    def without(leaf: Any) -> Any:
        if isinstance(leaf, tf.__internal__.CompositeTensor) and not hasattr(leaf, "handle"):
            return tf.type_spec_from_value(leaf)
        return None

    return tf.nest.map_structure(without, structure)


def _key(leaves: list[Any]) -> Hashable:
    """What tells arguments apart that are no tensors: plain ones by value, others as objects."""
    import tensorflow as tf

    plain = (bool, int, float, complex, str, bytes, type(None), tf.DType)
    return tuple(
        None
        if isinstance(leaf, tf.Tensor)
        else (type(leaf), leaf if isinstance(leaf, plain) else id(leaf))
        for leaf in leaves
    )
