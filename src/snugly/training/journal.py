"""What a block did in its first pass, and the same again in its second.

Every operation that a block adds to a graph passes through one method of that graph. While a
block runs, that method is replaced: in the first pass to write down what must not happen twice,
in the second to give back what was written down.
"""

from __future__ import annotations

import inspect
import itertools
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from snugly.errors import InputError
from snugly.training.stateful import DRAWN, Kind, called_functions, inside, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PARAMETERS = ("dtypes", "input_types", "name", "attrs", "op_def", "compute_device")
"""What `Graph._create_op_internal` takes after an operation's type and inputs, TF 2.16 to 2.21."""

_PHILOX = 1  # RNG_ALG_PHILOX, tensorflow/core/framework/rng_alg.h, TF 2.21

_CALL = "a call that changes variables"

_WRAPPED = "cflow_gradient_wrapper"
"""The function that TensorFlow 2.21 puts around a loop for some tapes (control_flow_util_v2.py).
Its gradient runs the loop a second time, so what the loop changes would change twice."""

_COPIES = itertools.count()  # copies of variables are told apart by number

_DRAW_OTHERWISE = (
    "draw from a keras.random.SeedGenerator or a tf.random.Generator there, or leave that part"
    " out of the block"
)
_REMEDIES: dict[str, str] = dict.fromkeys(
    ("EagerPyFunc", "PyFunc"), "leave the part that calls Python out of the checkpointed block"
)


@dataclass(frozen=True)
class Entry:
    """One operation that must not simply run again."""

    operation: str
    results: tuple[Any, ...]
    """What it gave in the first pass; of a call, what the variables held that it changes."""
    changed: tuple[int, ...] = ()
    """Of a call: the ids of the handles of the variables that it changes."""


@dataclass
class Journal:
    """All that must be known of a first pass to repeat it."""

    entries: list[Entry] = field(default_factory=list)
    taken_in: dict[int, Any] = field(default_factory=dict)
    """Tensors that the block uses and did not compute, by id; handles of variables as well.

    Constants are among them: a graph takes in small eager tensors as constants.
    """

    @property
    def remembered(self) -> list[Any]:
        """Every tensor that is kept between the passes on account of the entries."""
        return [tensor for entry in self.entries for tensor in entry.results]


@dataclass(frozen=True)
class Stand:
    """Stands for an operation that was not added to the graph, towards the code that asked for it.

    TensorFlow's generated functions read an operation's inputs, outputs and attributes, for tapes.
    """

    type: str
    inputs: Sequence[Any]
    outputs: list[Any]
    attributes: Mapping[str, Any]

    def get_attr(self, name: str) -> Any:
        """An attribute as `tf.Operation.get_attr` would give it, for the few types that occur."""
        import tensorflow as tf

        value = self.attributes[name]
        kind = value.WhichOneof("value")
        return tf.dtypes.as_dtype(value.type) if kind == "type" else getattr(value, kind)

    _get_attr_type = _get_attr_int = _get_attr_bool = get_attr


class FirstPass:
    """Writes a journal while a block adds its operations to a graph."""

    def __init__(self, graph: Any) -> None:
        self.journal = Journal()
        self._graph = graph
        self._made: set[str] = set()

    def add(self, create: Any, operation: str, inputs: Sequence[Any], more: Any) -> Any:
        """Add an operation as it was asked for, and write down what the second pass needs."""
        kind = kind_of(operation)
        if kind is Kind.REFUSED:
            _refuse(operation)
        if kind is Kind.DRAWN:
            # A key is drawn from the hidden state and the numbers from the key, which is small.
            key = draw_key(more["attrs"])
            self.journal.entries.append(Entry(operation, (key,)))
            return Stand(operation, inputs, [draw(operation, inputs, more, key)], more["attrs"])
        if kind is Kind.CALLING:
            self._prepare_call(operation, inputs, more)
        made = create(operation, inputs, **more)
        self.note(made)
        if kind is Kind.REMEMBERED:
            self.journal.entries.append(Entry(operation, tuple(made.outputs)))
        elif kind is Kind.LEFT_OUT:
            self.journal.entries.append(Entry(operation, ()))
        return made

    def note(self, made: Any) -> None:
        """An operation was added: it is the block's, and what it uses may not be."""
        if isinstance(made, Stand):  # given by a block around this one, which repeats itself
            self._made.update(tensor.op.name for tensor in made.outputs)
            return
        if made.type != "Placeholder":  # a placeholder is how a graph takes in what lies outside
            self._made.add(made.name)
        for tensor in made.inputs:
            if tensor.op.type == "Const" or tensor.op.name not in self._made:
                self.journal.taken_in.setdefault(id(tensor), tensor)

    def _prepare_call(self, operation: str, inputs: Sequence[Any], more: Any) -> None:
        import tensorflow as tf

        changed = changed_by(operation, more, self._graph)
        if changed:
            # Read before the call is added, and so before what it changes.
            values = tuple(
                tf.raw_ops.ReadVariableOp(resource=inputs[index], dtype=_held(inputs[index]))
                for index in changed
            )
            names = tuple(id(known_outside(self._graph, inputs[index])) for index in changed)
            self.journal.entries.append(Entry(_CALL, values, names))


class SecondPass:
    """Repeats a journal while the block adds its operations to a graph once more."""

    def __init__(self, graph: Any, journal: Journal, late: Mapping[int, Any]) -> None:
        self._graph = graph
        self._entries = iter(journal.entries)
        self._late = late
        self._after: set[str] = {tensor.op.name for tensor in late.values()}
        self._barrier = next(iter(late.values())).op if late else None

    def add(self, create: Any, operation: str, inputs: Sequence[Any], more: Any) -> Any:
        """Add an operation, or give what it gave in the first pass."""
        inputs = [self._late.get(id(tensor), tensor) for tensor in inputs]
        kind = kind_of(operation)
        if kind is Kind.REPEATED:
            return self._create(create, operation, inputs, more)
        changed: list[int] = []
        if kind is Kind.CALLING:
            changed = changed_by(operation, more, self._graph)
            if not changed:
                return self._create(create, operation, inputs, more)
        entry = next(self._entries, None)
        if entry is None or entry.operation != (_CALL if changed else operation):
            _differently(operation, entry)
        kept = [self._late[id(tensor)] for tensor in entry.results]
        if kind is Kind.LEFT_OUT:
            return create("NoOp", [], name=more.get("name"))
        if kind is Kind.DRAWN:
            return Stand(operation, inputs, [draw(operation, inputs, more, kept[0])], more["attrs"])
        if changed:
            names = called_functions(more.get("attrs"))
            if any(_WRAPPED in name for name in names):
                _refuse(
                    "a random draw or another change of a variable", around="loop or branch (eager)"
                )
            values = dict(zip(entry.changed, kept, strict=True))
            return self._call(create, operation, inputs, more, changed, values)
        return Stand(operation, inputs, [_again(tensor) for tensor in kept], more["attrs"])

    def note(self, made: Any) -> None:
        """An operation was added on the way to another."""
        if not isinstance(made, Stand) and any(
            tensor.op.name in self._after for tensor in made.inputs
        ):
            self._after.add(made.name)

    def finish(self) -> None:
        """The block is done; has it done all that it did in the first pass?"""
        entry = next(self._entries, None)
        if entry is not None:
            _differently(None, entry)

    def _create(self, create: Any, operation: str, inputs: Sequence[Any], more: Any) -> Any:
        late = any(getattr(getattr(t, "op", None), "name", None) in self._after for t in inputs)
        if late or operation in {"Const", "Placeholder", "NoOp"} or self._barrier is None:
            made = create(operation, inputs, **more)
        else:
            # What depends on nothing of the block's would run early in the step, and be held.
            with self._graph.control_dependencies([self._barrier]):
                made = create(operation, inputs, **more)
            late = True
        if late:
            self._after.add(made.name)
        return made

    def _call(  # noqa: PLR0913, PLR0917  # an operation is described by that many
        self,
        create: Any,
        operation: str,
        inputs: list[Any],
        more: Any,
        changed: list[int],
        values: Mapping[int, Any],
    ) -> Any:
        """Let a call change variables again, in copies or so that nobody sees it.

        XLA knows no variables of its own making: there the variable itself is set back, changed
        once more, and given the value that it had come to.
        """
        import tensorflow as tf

        compiled = is_compiled(self._graph)
        ready, restore = [], []
        for index in changed:
            value = values.get(id(known_outside(self._graph, inputs[index])))
            if value is None:
                _differently(_CALL, None)
            if compiled:
                held = tf.raw_ops.ReadVariableOp(resource=inputs[index], dtype=value.dtype)
                restore.append((inputs[index], held))
                ready.append(held.op)
            else:
                inputs[index] = _copied(value)
                continue
            with self._graph.control_dependencies(ready):
                ready.append(tf.raw_ops.AssignVariableOp(resource=inputs[index], value=value))
        with self._graph.control_dependencies(ready):
            made = self._create(create, operation, inputs, more)
        with self._graph.control_dependencies([made]):
            for handle, held in restore:
                tf.raw_ops.AssignVariableOp(resource=handle, value=held)
        return made


@contextmanager
def passing_through(graph: Any, each: FirstPass | SecondPass) -> Iterator[None]:
    """Let every operation that is added to a graph pass through one of the two passes."""
    create = graph._create_op_internal  # noqa: SLF001  # where every operation comes by
    busy = False

    def add(operation: str, inputs: Sequence[Any], *rest: Any, **named: Any) -> Any:
        nonlocal busy
        more = {**dict(zip(_PARAMETERS, rest, strict=False)), **named}
        if busy:  # asked for by a pass itself, or by the graph, while one operation is added
            made = create(operation, inputs, **more)
            each.note(made)
            return made
        busy = True
        try:
            return each.add(create, operation, inputs, more)
        finally:
            busy = False

    graph._create_op_internal = add  # noqa: SLF001
    try:
        yield
    finally:
        if inspect.ismethod(create):
            del graph._create_op_internal  # noqa: SLF001  # the class's own comes to light again
        else:
            graph._create_op_internal = create  # noqa: SLF001  # that of a block around this one


def is_compiled(graph: Any) -> bool:
    """Whether XLA will compile a graph, as far as TensorFlow knows while it is built."""
    from tensorflow.python.ops import control_flow_util

    return control_flow_util.GraphOrParentsInXlaContext(graph)


def changed_by(operation: str, more: Any, graph: Any) -> list[int]:
    """Which inputs of a loop, a branch or a call are variables that it assigns to."""
    within = inside(called_functions(more.get("attrs")), graph)
    if within.hidden is not None:
        _refuse(within.hidden, around=operation)
    first = 1 if operation.endswith(("If", "Case")) else 0  # what is decided comes before
    return sorted(index + first for index in within.changed)


def known_outside(graph: Any, tensor: Any) -> Any:
    """The tensor itself where a graph has only taken it in: what every graph knows it by."""
    for outer, inner in getattr(graph, "captures", ()):
        if inner is tensor:
            return known_outside(getattr(graph, "outer_graph", None), outer)
    return tensor


def _copied(value: Any) -> Any:
    """The handle of a new variable that holds a value, not to be had before it does."""
    import tensorflow as tf
    from tensorflow.python.ops import handle_data_util

    handle = tf.raw_ops.VarHandleOp(
        dtype=value.dtype, shape=value.shape, shared_name=f"snugly_{next(_COPIES)}"
    )
    with tf.control_dependencies([tf.raw_ops.AssignVariableOp(resource=handle, value=value)]):
        filled = tf.identity(handle)
    handle_data_util.copy_handle_data(handle, filled)
    return filled


def draw_key(attributes: Mapping[str, Any]) -> Any:
    """A key for one draw, from the hidden state that the draw itself would have used."""
    import tensorflow as tf

    whole = tf.int64
    return tf.raw_ops.RandomUniformInt(
        shape=[1],
        minval=tf.constant(whole.min, whole),
        maxval=tf.constant(whole.max, whole),
        seed=attributes["seed"].i,
        seed2=attributes["seed2"].i,
    )


def draw(operation: str, inputs: Sequence[Any], more: Any, key: Any) -> Any:
    """Draw random numbers from a key: the same key gives the same numbers."""
    import tensorflow as tf

    shape, *limits = inputs
    given: dict[str, Any] = {
        "shape": shape,
        "key": tf.bitcast(key, tf.uint64),
        "counter": tf.zeros([2], tf.uint64),
        "alg": tf.constant(_PHILOX),
    }
    if limits:
        given.update(minval=limits[0], maxval=limits[1])
    else:
        given["dtype"] = tf.dtypes.as_dtype(more["attrs"]["dtype"].type)
    return getattr(tf.raw_ops, DRAWN[operation])(**given)


def _again(tensor: Any) -> Any:
    """The same tensor under a new name, so that a tape tells two reads of a variable apart."""
    import tensorflow as tf

    return tensor if tensor.dtype in {tf.resource, tf.variant} else tf.identity(tensor)


def _held(handle: Any) -> Any:
    """The type of what a variable holds, from its handle."""
    import tensorflow as tf
    from tensorflow.python.ops import handle_data_util

    data = handle_data_util.get_resource_handle_data(handle)
    return tf.dtypes.as_dtype(data.shape_and_type[0].dtype)


def stop(message: str, code: str, hint: str | None = None) -> NoReturn:
    """Raise an error that Keras and AutoGraph, who stand between, pass on as it is."""
    error: Any = InputError(message, code=code, hint=hint)
    error.ag_pass_through = True  # autograph/impl/api.py, TF 2.21
    error._keras_call_info_injected = True  # noqa: SLF001  # keras/src/utils/traceback_utils.py
    raise error


def _refuse(operation: str, around: str | None = None) -> NoReturn:
    where = "" if around is None else f" inside a {around}"
    stop(
        f"a checkpointed block holds {operation}{where}, which cannot be had the same twice",
        "SNG543",
        _REMEDIES.get(operation, _DRAW_OTHERWISE),
    )


def _differently(operation: str | None, entry: Entry | None) -> NoReturn:
    now = "came to its end" if operation is None else f"came to {operation}"
    then = "had come to its end" if entry is None else f"had come to {entry.operation}"
    stop(
        f"a checkpointed block {now} in the backward pass, where it {then} in the forward pass",
        "SNG542",
    )
