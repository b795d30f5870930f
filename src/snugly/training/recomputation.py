"""A block in a graph whose gradient computes the block again.

TensorFlow keeps what the backward pass uses of the forward pass. Here it uses what the block took
in and a few small results (seeds, what variables held); all else is computed again, once the
gradient of the block's outputs is there.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.training.journal import (
    FirstPass,
    Journal,
    SecondPass,
    is_compiled,
    passing_through,
    stop,
)
from snugly.training.keras_state import Scopes, hang_mask, losses_apart, mask_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_GRADIENT = "SnuglyRecomputation"
_BLOCKS = "_snugly_blocks"
_SMALL = 64  # elements; a seed has two, a weight that matters has more


@dataclass(frozen=True)
class Block:
    """What the backward pass needs to run a block again."""

    function: Callable[..., Any]
    arguments: Any
    masks: tuple[Any, ...]
    """What hung on each leaf of the arguments before the first pass: Keras's attention takes the
    masks off the tensors that it is called with."""
    journal: Journal
    scopes: Scopes
    device: str
    taken_in: tuple[Any, ...]
    """Tensors that the block uses: its arguments, what it closes over, handles of variables."""
    outer: tuple[tuple[Any, Any], ...]
    """Tensors from outside the graph that the block closes over, each with the graph's name for it:
    another graph, with the gradient in it, takes in the first by itself."""


def run_recomputed(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Run a function in the graph that is being built, so that its gradient runs it again."""
    import tensorflow as tf

    graph = tf.compat.v1.get_default_graph()
    scopes = Scopes.current()
    first = FirstPass(graph)
    given = tf.nest.flatten((args, kwargs), expand_composites=True)
    masks = tuple(mask_of(leaf) if isinstance(leaf, tf.Tensor) else None for leaf in given)
    with losses_apart() as losses, no_variables_made(graph), passing_through(graph, first):
        result = function(*args, **kwargs)
    leaves = tf.nest.flatten(result, expand_composites=True)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, tf.Tensor)]
    outputs = [leaves[i] for i in places] + [loss for _, loss in losses]
    if not outputs:
        return result
    taken_in = _taken_in(graph, first.journal, (args, kwargs))
    device = getattr(getattr(outputs[0], "op", None), "device", "")
    known = {id(tensor) for tensor in taken_in}
    outer = tuple(pair for pair in getattr(graph, "captures", ()) if id(pair[1]) in known)
    block = Block(function, (args, kwargs), masks, first.journal, scopes, device, taken_in, outer)
    ends = _border(graph, block, outputs)
    for place, end in zip(places, ends, strict=False):
        hang_mask(end, mask_of(leaves[place]))
        leaves[place] = end
    for (layer, _), end in zip(losses, ends[len(places) :], strict=True):
        layer.add_loss(end)
    return tf.nest.pack_sequence_as(result, leaves, expand_composites=True)


def _taken_in(graph: Any, journal: Journal, arguments: Any) -> tuple[Any, ...]:
    """All that a block uses and did not compute, variables by the handle that a tape knows."""
    import tensorflow as tf

    outside = {id(inner): outer for outer, inner in getattr(graph, "captures", ())}
    found = {}
    given = [
        x for x in tf.nest.flatten(arguments, expand_composites=True) if isinstance(x, tf.Tensor)
    ]
    for tensor in (*given, *journal.taken_in.values()):
        if (
            getattr(getattr(tensor, "op", None), "type", "") == "Const"
            and id(tensor) not in outside
        ):
            continue
        known = outside.get(id(tensor), tensor) if tensor.dtype == tf.resource else tensor
        found.setdefault(id(known), known)
    return tuple(found.values())


def _border(graph: Any, block: Block, outputs: Sequence[Any]) -> list[Any]:
    """The outputs as the rest of the graph sees them: their gradient goes to `recompute`."""
    import tensorflow as tf
    from tensorflow.python.eager import record

    _register()
    count = len(outputs)
    inner = [*outputs, *block.taken_in]
    with record.stop_recording(), graph.gradient_override_map({"IdentityN": _GRADIENT}):
        border = tf.raw_ops.IdentityN(input=inner)
    if not hasattr(graph, _BLOCKS):
        setattr(graph, _BLOCKS, {})
    getattr(graph, _BLOCKS)[border[0].op.name] = (block, count)
    ends = border[:count]
    record.record_operation(
        _GRADIENT,
        ends,
        inner,
        lambda *gradients: [None] * count + recompute(block, gradients),
    )
    return ends


def _register() -> None:
    """Tell TensorFlow, once, how to differentiate a border where there is no tape."""
    import tensorflow as tf
    from tensorflow.python.framework import ops

    try:
        ops.gradient_registry.lookup(_GRADIENT)
    except LookupError:

        @tf.RegisterGradient(_GRADIENT)
        def _gradient(operation: Any, *gradients: Any) -> Any:
            known = getattr(operation.graph, _BLOCKS, {}).get(operation.name)
            if known is None:  # loaded from a file: the block's own operations are there as well
                return gradients
            block, count = known
            return [None] * count + recompute(block, gradients[:count])


def recompute(block: Block, gradients: Sequence[Any]) -> list[Any]:
    """Run a block again and go back through it; a gradient, or None, for all that it took in."""
    import tensorflow as tf

    given = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
    after = [g for i, g in enumerate(given) if g is not None and is_trainable(g)]
    if not after:
        return [None] * len(block.taken_in)
    graph = tf.compat.v1.get_default_graph()
    with ExitStack() as stack:
        stack.enter_context(tf.name_scope("recomputed"))
        stack.enter_context(tf.device(block.device) if block.device else nullcontext())
        late = held_back(_held(block), after)
        for far, near in block.outer:
            if id(near) in late:
                late[id(far)] = late[id(graph.capture(far))] = late[id(near)]
        second = SecondPass(graph, block.journal, late)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            sources = _sources(block, late)
            for source in (source for several in sources for source in several):
                tape.watch(source)
                _tell_capture(graph, source)
            with (
                block.scopes.entered(),
                losses_apart() as losses,
                no_variables_made(graph),
                passing_through(graph, second),
            ):
                args, kwargs = _arguments(block, late)
                result = block.function(*args, **kwargs)
            second.finish()
        leaves = tf.nest.flatten(result, expand_composites=True)
        outputs = [leaf for leaf in leaves if isinstance(leaf, tf.Tensor)] + [
            loss for _, loss in losses
        ]
        pairs = [
            (output, gradient)
            for output, gradient in zip(outputs, given, strict=True)
            if gradient is not None and is_trainable(output)
        ]
        flat = [source for several in sources for source in several]
        found = iter(
            tape.gradient(
                [output for output, _ in pairs],
                flat,
                output_gradients=[gradient for _, gradient in pairs],
            )
        )
        return [_sum([next(found) for _ in several]) for several in sources]


def _held(block: Block) -> list[Any]:
    """The tensors that are kept from one pass to the other."""
    import tensorflow as tf

    masks = [mask for mask in block.masks if mask is not None]
    return [
        tensor
        for tensor in (*block.taken_in, *block.journal.remembered, *masks)
        if tensor.dtype not in {tf.resource, tf.variant}
    ]


def held_back(tensors: Sequence[Any], after: Sequence[Any]) -> dict[int, Any]:
    """The same tensors, but not before others are there, by the id of each.

    Without this the second pass would run at once, or be merged with the first, whose results
    would then be kept.
    """
    import tensorflow as tf

    graph = tf.compat.v1.get_default_graph()
    unique = list({id(tensor): tensor for tensor in tensors}.values())
    if not unique:
        return {}
    if is_compiled(graph):
        later = _behind_barrier(unique, after)
    else:
        with tf.control_dependencies(after):
            later = [tf.identity(tensor) for tensor in unique]
    return {id(tensor): each for tensor, each in zip(unique, later, strict=True)}


def _behind_barrier(tensors: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """The same under XLA, which heeds no control dependencies.

    Its barrier keeps the two passes from being merged. It is taken away before XLA orders the
    operations, so each tensor is also made to depend on one that it must wait for, by a factor
    of one that XLA cannot see through.
    """
    import tensorflow as tf
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    @tf.custom_gradient
    def barrier(*inner: Any) -> Any:
        return gen_xla_ops.xla_optimization_barrier(inner), lambda *gradients: gradients

    *behind, last = barrier(*tensors, after[0])
    nothing = _hidden_zero(last)
    return [
        tensor * (1 + tf.cast(nothing, tensor.dtype)) if _is_chained(before) else tensor
        for before, tensor in zip(tensors, behind, strict=True)
    ]


def _is_chained(tensor: Any) -> bool:
    """Whether a tensor is worth a multiplication: weights are not, little hangs on them alone."""
    if not (tensor.dtype.is_floating or tensor.dtype.is_integer):
        return False
    read = getattr(getattr(tensor, "op", None), "type", "") == "ReadVariableOp"
    return not read or (tensor.shape.num_elements() or _SMALL) < _SMALL


def _hidden_zero(tensor: Any) -> Any:
    """Zero, computed from a tensor in a way that no compiler simplifies: bit 1 of a square."""
    import tensorflow as tf

    whole = tf.bitcast(tf.cast(tf.reshape(tensor, [-1])[:1], tf.float32), tf.int32)
    whole = tf.reduce_max(whole)  # of none or one: the gradient of nothing is nothing as well
    return tf.bitwise.bitwise_and(tf.bitwise.right_shift(whole * whole, 1), 1)


def _sources(block: Block, late: dict[int, Any]) -> list[list[Any]]:
    """Under which names the tape may know each tensor that the block took in.

    A function that closes over a tensor gives it to operations, where its late double takes its
    place, or to functions and custom gradients, which tell the tape about the tensor itself.
    """
    import tensorflow as tf

    sources = []
    for tensor in block.taken_in:
        if tensor.dtype == tf.resource:
            sources.append([tensor])
        elif is_trainable(tensor):
            sources.append([late[id(tensor)], tensor] if id(tensor) in late else [tensor])
        else:
            sources.append([])
    return sources


def _tell_capture(graph: Any, tensor: Any) -> None:
    """Tell tapes under which name a graph knows a tensor that it takes in from outside."""
    from tensorflow.python.eager import record

    inner = graph.capture(tensor) if hasattr(graph, "capture") else tensor
    if inner is not tensor:
        record.record_operation("captured_value", [inner], [tensor], lambda gradient: [gradient])


def _arguments(block: Block, late: dict[int, Any]) -> Any:
    """The block's arguments for the second pass, with the masks that hung on the first ones."""
    import tensorflow as tf

    leaves = tf.nest.flatten(block.arguments, expand_composites=True)
    for i, (leaf, mask) in enumerate(zip(leaves, block.masks, strict=True)):
        if isinstance(leaf, tf.Tensor) and id(leaf) in late:
            leaves[i] = tf.identity(late[id(leaf)])
            hang_mask(leaves[i], None if mask is None else late.get(id(mask), mask))
    return tf.nest.pack_sequence_as(block.arguments, leaves, expand_composites=True)


def _sum(gradients: Sequence[Any]) -> Any:
    from tensorflow.python.eager import backprop

    found = [gradient for gradient in gradients if gradient is not None]
    if len(found) <= 1:
        return found[0] if found else None
    return backprop._aggregate_grads(found)  # noqa: SLF001  # adds slices without making them dense


def is_trainable(tensor: Any) -> bool:
    """Whether gradients flow through tensors of this type."""
    import tensorflow as tf

    return tensor.dtype.is_floating or tensor.dtype.is_complex or tensor.dtype == tf.variant


@contextmanager
def no_variables_made(graph: Any) -> Iterator[None]:
    """Refuse variables: made in a block, they would be made again in its second pass."""
    import tensorflow as tf

    def refuse(_next: Any, **named: Any) -> Any:
        stop(f"a checkpointed block creates the variable {named.get('name')!r}", "SNG541")

    with tf.init_scope():
        around = tf.compat.v1.get_default_graph()
    with ExitStack() as stack:
        for each in {id(g): g for g in (graph, around)}.values():
            stack.enter_context(each._variable_creator_scope(refuse))  # noqa: SLF001
        yield
