"""Rows whose activations are computed again, where keeping all of them would break the budget.

The function is cut into segments. A first pass keeps only what crosses the cuts. Then, from the
last segment to the first, each is computed again from what was kept, and the rows go back through
it; its activations are gone before those of the segment before it are made. The numbers are those
of plain reverse mode: the same operations, on the same values. It costs about one more forward
pass for each chunk of rows.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from snugly.jacobians.lines import Lines
from snugly.jacobians.segments import Cut, Order, recomputable, segment_counts
from snugly.jacobians.subject import tensorflow
from snugly.jacobians.vectorising import side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from snugly.jacobians.subject import Subject

_REWRITTEN: Final = frozenset({
    "Case", "If", "PartitionedCall", "StatefulPartitionedCall", "StatelessCase", "StatelessIf",
    "StatelessWhile", "While",
})  # fmt: skip
"""Taking a gradient gives these more results, what their gradient needs (while_v2.py, cond_v2.py,
concrete_function.py, TF 2.21); where no gradient is taken they run as they were."""
_CALLS: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_SMALL: Final = 1 << 16
"""Constants up to so many bytes are copied, so that shapes that depend on them stay known."""


@dataclass(frozen=True, slots=True)
class Recomputed(Lines):
    """Rows for which the forward pass is computed again in so many segments, about."""

    segments: int = 2

    def start(self, leaves: Sequence[Any]) -> Callable[[Any], list[Any]]:
        """Keep what crosses the cuts; the function that is returned computes one row."""
        rows = self.several(leaves, vectorised=False)
        return lambda number: [line[0] for line in rows(number[None])]

    def several(self, leaves: Sequence[Any], *, vectorised: bool) -> Callable[[Any], list[Any]]:
        """Keep what crosses the cuts; the function that is returned computes some rows."""
        way = _way_back(self.subject, self.leaf, self.segments)
        kept = way.forward(leaves)
        return lambda numbers: self._back(way, kept, numbers, vectorised=vectorised)

    def _back(
        self, way: _Way, kept: Mapping[str, Any], numbers: Any, *, vectorised: bool
    ) -> list[Any]:
        tf = tensorflow()
        upstream = {way.output.name: self._seeds(way, numbers, vectorised=vectorised)}
        gate = None
        for step in way.steps:
            copying = way.copying(kept, gate)
            copying.bring(step.shared)
            rows = tuple(upstream.pop(name) for name in step.behind)
            found = _through(step, copying, rows, vectorised=vectorised)
            for name, gradient in zip(step.before, found, strict=True):
                added = upstream.get(name)
                upstream[name] = gradient if added is None else added + gradient
            # The next segment waits for all of this one, the rows of weights too: only then are
            # its activations gone, and only so is it not taken for the first pass's own work.
            gate = tf.group(*found) if found else gate
        count = numbers.shape[0]
        return [
            self._flattened(upstream.get(name), number, count)
            for number, name in enumerate(way.sources)
        ]

    def _seeds(self, way: _Way, numbers: Any, *, vectorised: bool) -> Any:
        dtype = way.output.dtype
        if not vectorised:
            return self.seed(numbers[0], self.along, dtype)[None]
        return side_by_side(lambda number: [self.seed(number, self.along, dtype)], numbers)[0]

    def _flattened(self, rows: Any, source: int, count: int) -> Any:
        tf = tensorflow()
        leaf = self.across[source]
        examples = (self.examples,) if self.examples else ()
        shape = (count, *examples, leaf.size // max(1, self.examples))
        return tf.zeros(shape, leaf.dtype) if rows is None else tf.reshape(rows, shape)


def _through(
    step: _Step, copying: _Copying, rows: tuple[Any, ...], *, vectorised: bool
) -> list[Any]:
    """What becomes of rows on their way back through a segment, each stacked."""

    def back(gradients: Sequence[Any]) -> list[Any]:
        names = (seed.name for seed in step.seeds)
        return copying.with_these(dict(zip(names, gradients, strict=True))).bring(step.results)

    if not step.results:
        return []
    if vectorised:
        return list(side_by_side(back, rows))
    return [found[None] for found in back([row[0] for row in rows])]


@dataclass(frozen=True, slots=True)
class _Step:
    """The way back through one segment, by names and tensors of the traced graph."""

    behind: list[str]
    """The tensors whose gradients come in."""
    seeds: list[Any]
    """Where these gradients are put in."""
    before: list[str]
    """The tensors, inputs and variables whose gradients come out."""
    results: list[Any]
    """Where these gradients come out."""
    shared: list[Any]
    """What all rows need of the segment: its activations."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A traced function with its gradients, segment by segment from the last to the first."""

    graph: Any
    inputs: list[Any]
    output: Any
    sources: list[str]
    """What is differentiated by; empty where the function does not have it."""
    crossing: list[Any]
    """What the first pass keeps."""
    steps: list[_Step]
    originals: dict[str, _Original]

    def forward(self, leaves: Sequence[Any]) -> dict[str, Any]:
        """The first pass: what crosses the cuts, by name, with inputs and large constants."""
        names = [tensor.name for tensor in self.inputs]
        known = dict(zip(names, leaves, strict=True))
        for outer, inner in self.graph.captures:
            known[inner.name] = outer
        copying = _Copying(self.graph, dict(known), originals=self.originals)
        kept = copying.bring(self.crossing)
        known.update(zip((tensor.name for tensor in self.crossing), kept, strict=True))
        return {**known, **copying.large}

    def copying(self, kept: Mapping[str, Any], gate: Any) -> _Copying:
        """A way to compute again what lies behind something that was kept."""
        known = dict(kept)
        if gate is None:
            return _Copying(self.graph, known)
        barred = {t.name: known.pop(t.name) for t in (*self.inputs, *self.crossing)}
        return _Copying(self.graph, known, gate=gate, barred=barred)


@dataclass(frozen=True, slots=True)
class _Original:
    """An operation as it was before its gradient was taken."""

    inputs: tuple[Any, ...]
    attributes: dict[str, Any]
    types: list[Any]


@dataclass(slots=True)
class _Copying:
    """Copies operations of a traced graph into the graph that is being made, as far as needed."""

    graph: Any
    known: dict[str, Any]
    """Tensors of the graph that is being made, by the name they have in the traced one."""
    gate: Any = None
    """What has to be over before any copy runs."""
    barred: dict[str, Any] = field(default_factory=dict)
    """More that is known, and is to be had only once the gate is open."""
    originals: Mapping[str, _Original] = field(default_factory=dict)
    large: dict[str, Any] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)

    def with_these(self, more: Mapping[str, Any]) -> _Copying:
        """The same, with more that is known, for what depends on it."""
        return _Copying(self.graph, {**self.known, **more})

    def bring(self, tensors: Iterable[Any]) -> list[Any]:
        """The copies of tensors, with all operations that they need and that are not there yet."""
        wanted = list(tensors)
        left = [tensor.op for tensor in wanted if not self._has(tensor)]
        while left:
            operation = left[-1]
            if operation.name in self._made:
                left.pop()
                continue
            missing = [t.op for t in self._original(operation).inputs if not self._has(t)]
            left.extend(missing)
            if not missing:
                self._copy(left.pop())
        return [self.known[tensor.name] for tensor in wanted]

    def _has(self, tensor: Any) -> bool:
        """Whether a tensor is known, once what was kept of it has passed the gate.

        Grappler takes operations with equal inputs for one, whatever they wait for, and would keep
        the first pass's activations instead. It leaves a placeholder alone, which gives its
        default, in the same memory (`IsFreeOfSideEffect` in grappler/op_types.cc, TF 2.21).
        """
        tf = tensorflow()
        if tensor.name in self.barred:
            kept = self.barred.pop(tensor.name)
            with tf.control_dependencies([self.gate]):
                behind = tf.compat.v1.placeholder_with_default(kept, kept.shape)
            self.known[tensor.name] = behind
        return tensor.name in self.known

    def _original(self, operation: Any) -> _Original:
        return self.originals.get(operation.name) or _original(operation)

    def _copy(self, operation: Any) -> None:
        tf = tensorflow()
        target = tf.compat.v1.get_default_graph()
        original = self._original(operation)
        if _calls(original):
            for function in self.graph._functions.values():  # noqa: SLF001 - no public way
                target._add_function_recursive(function)  # noqa: SLF001
        with ExitStack() as stack:
            stack.enter_context(tf.device(operation.device or None))
            if self.gate is not None and operation.type == "ReadVariableOp":
                # Reading has a state, so that Grappler leaves it alone too.
                stack.enter_context(tf.control_dependencies([self.gate]))
            copy = target.create_op(
                operation.type,
                [self.known[tensor.name] for tensor in original.inputs],
                original.types,
                attrs=original.attributes,
                name=operation.name,
            )
        self._made.add(operation.name)
        # More results may have been added to an operation than its original has.
        for old, new in zip(operation.outputs, copy.outputs, strict=False):
            # What was kept of an operation with several results stays what it was.
            self.known.setdefault(old.name, _described(old, new))
        if operation.type == "Const" and _content(operation) > _SMALL:
            self.large[operation.outputs[0].name] = copy.outputs[0]


def _original(operation: Any) -> _Original:
    # Where it ran together with others is of the old graph (`_class`).
    attributes = {k: v for k, v in operation.node_def.attr.items() if k != "_class"}
    types = [tensor.dtype for tensor in operation.outputs]
    return _Original(tuple(operation.inputs), attributes, types)


def _calls(original: _Original) -> bool:
    values = original.attributes.values()
    return any(value.HasField("func") or value.list.func for value in values)


def _content(operation: Any) -> int:
    return operation.node_def.attr["value"].tensor.ByteSize()


def _described(old: Any, new: Any) -> Any:
    """A copy that knows of its shape what the tensor knew that it is a copy of."""
    from tensorflow.python.ops import handle_data_util

    tf = tensorflow()
    if old.dtype in {tf.resource, tf.variant}:
        handle_data_util.copy_handle_data(old, new)
    if not new.shape.is_fully_defined():
        new.set_shape(old.shape)
    return new


_ways: WeakKeyDictionary[Subject, dict[int, tuple[int, _Way]]] = WeakKeyDictionary()


def _way_back(subject: Subject, leaf: int, segments: int) -> _Way:
    """The way back from an output; that of the last number of segments is kept."""
    ways = _ways.setdefault(subject, {})
    if leaf not in ways or ways[leaf][0] != segments:
        ways[leaf] = segments, _found_way(subject, leaf, segments)
    return ways[leaf][1]


def _found_way(subject: Subject, leaf: int, segments: int) -> _Way:
    tf = tensorflow()
    # A trace of its own: taking gradients changes the operations that call functions.
    function = tf.function(lambda *leaves: subject.call(leaves), autograph=False)
    graph = function.get_concrete_function(*tf.nest.flatten(subject.structure)).graph
    order = Order(graph)
    output = graph.outputs[leaf]
    cuts = [cut for cut in order.cuts(segments) if cut.position <= order.position(output)]
    cuts = _named(graph, order, cuts)
    originals = {each.name: _original(each) for each in order.operations if each.type in _REWRITTEN}
    inputs = list(graph.inputs[: len(subject.inputs)])
    sources = inputs
    if subject.variables is not None:
        handles = {id(outer): inner for outer, inner in graph.captures}
        sources = [handles.get(id(variable.handle)) for variable in subject.variables]
    steps: list[_Step] = []
    upstream = {output.name: output}
    with graph.as_default():
        for cut in (*reversed(cuts), None):
            first = 0 if cut is None else cut.position
            crossing = [] if cut is None else list(cut.crossing)
            behind = [t for t in upstream.values() if cut is None or order.position(t) >= first]
            for tensor in behind:
                del upstream[tensor.name]
            towards = [t for t in crossing if t.dtype.is_floating or t.dtype.is_complex]
            by = [source for source in sources if source is not None]
            step = _step(graph, behind, _distinct([*towards, *by]), [*crossing, *inputs])
            if step is not None:
                steps.append(step)
                reached = set(step.before)
                upstream.update({t.name: t for t in towards if t.name in reached})
    crossing = _distinct(tensor for cut in cuts for tensor in cut.crossing)
    names = ["" if source is None else source.name for source in sources]
    return _Way(graph, inputs, output, names, crossing, steps, originals)


def _named(graph: Any, order: Order, cuts: list[Cut]) -> list[Cut]:
    """The same cuts, where results of calls get another name behind the first cut they cross.

    `tf.gradients` does not stop at an operation that calls a function (`_GradientsHelper` in
    gradients_util.py, TF 2.21): it would go on through it, and count what comes before it twice.
    """
    tf = tensorflow()
    others: dict[str, Any] = {}
    named = []
    for cut in cuts:
        crossing = []
        for tensor in cut.crossing:
            if tensor.op.type in _CALLS and tensor.name not in others:
                with graph.as_default():
                    others[tensor.name] = tf.identity(tensor)
                for operation in order.operations[cut.position :]:
                    for place, used in enumerate(operation.inputs):
                        if used.name == tensor.name:
                            operation._update_input(place, others[tensor.name])  # noqa: SLF001 - no public way
                order.place(others[tensor.name], cut.position)
            crossing.append(others.get(tensor.name, tensor))
        named.append(Cut(cut.position, tuple(crossing)))
    return named


def _step(graph: Any, behind: list[Any], towards: list[Any], ends: list[Any]) -> _Step | None:
    """Gradients of what lies behind a segment by what lies before it, and by what it uses."""
    tf = tensorflow()
    if not behind or not towards:
        return None
    already = len(graph.get_operations())
    seeds = [tf.compat.v1.placeholder(tensor.dtype, tensor.shape) for tensor in behind]
    found = tf.gradients(behind, towards, grad_ys=seeds, stop_gradients=ends)
    pairs = [
        (t, tf.convert_to_tensor(g)) for t, g in zip(towards, found, strict=True) if g is not None
    ]
    results = [gradient for _, gradient in pairs]
    of_rows = {seed.op.name for seed in seeds}
    for operation in graph.get_operations()[already:]:
        if operation.type == "SymbolicGradient":
            raise NotImplementedError("a function of TensorFlow 1 inside cannot be computed again")
        if any(tensor.op.name in of_rows for tensor in operation.inputs):
            of_rows.add(operation.name)
    shared: dict[str, Any] = {}
    visited: set[str] = set()
    left = list(results)
    while left:
        tensor = left.pop()
        if tensor.op.name not in of_rows:
            shared[tensor.name] = tensor
        elif tensor.op.name not in visited:
            visited.add(tensor.op.name)
            left.extend(tensor.op.inputs)
    names = [tensor.name for tensor in behind]
    before = [tensor.name for tensor, _ in pairs]
    return _Step(names, seeds, before, results, list(shared.values()))


def _distinct(tensors: Iterable[Any]) -> list[Any]:
    return list({tensor.name: tensor for tensor in tensors}.values())


__all__ = ["Recomputed", "recomputable", "segment_counts"]
