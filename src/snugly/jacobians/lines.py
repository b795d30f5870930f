"""Lines: the rows or columns of a Jacobian, and the compiled programs that compute some of them.

A line is what one product gives: a row (vᵀJ, reverse mode) or a column (Jv, forward mode). Where
examples do not mix, one product gives a line of every example's own block at once.

TensorFlow vectorises several lines where it has a vectorised form of every operation involved;
otherwise lines are computed one after the other in a compiled loop. The forward pass runs once,
before the loop, in reverse mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from snugly.jacobians.last_layer import last_layer
from snugly.jacobians.subject import Leaf, Subject, tensorflow
from snugly.jacobians.vectorising import side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Mode: TypeAlias = Literal["reverse", "forward"]


@dataclass(frozen=True, slots=True)
class Lines:
    """All lines that belong to one output (reverse) or one input (forward)."""

    subject: Subject
    mode: Mode
    leaf: int
    """Which output, or which input."""
    examples: int = 0
    """How many examples that do not mix; 0 where lines are whole rows or columns."""
    total: int = 0
    """How many examples the result has, where these are only some of them."""

    @property
    def along(self) -> Leaf:
        """The tensor whose numbers the lines are counted by."""
        subject = self.subject
        return (subject.outputs if self.mode == "reverse" else subject.sources)[self.leaf]

    @property
    def across(self) -> list[Leaf]:
        """The tensors that each line has the numbers of."""
        return self.subject.sources if self.mode == "reverse" else self.subject.outputs

    @property
    def count(self) -> int:
        """How many lines there are."""
        return self.along.size // max(1, self.examples)

    def several(self, leaves: Sequence[Any], *, vectorised: bool) -> Callable[[Any], list[Any]]:
        """Run what all lines share; the function that is returned computes those of some numbers.

        It gives a tensor for each of `across`, with the lines along its first axis.
        """
        tf = tensorflow()
        line = self.start(leaves)
        if vectorised:
            return lambda numbers: side_by_side(line, numbers)
        return lambda numbers: [part[tf.newaxis] for part in line(numbers[0])]

    def start(self, leaves: Sequence[Any]) -> Callable[[Any], list[Any]]:
        """Run what all lines share; the function that is returned computes one, by its number.

        It gives one flat tensor for each of `across`, or (examples, …) where they do not mix.
        """
        return self._rows(leaves) if self.mode == "reverse" else self._columns(leaves)

    def seed(self, number: Any, leaf: Leaf, dtype: Any) -> Any:
        """One where this line is, zero elsewhere; one in every example where they do not mix."""
        tf = tensorflow()
        if not self.examples:
            return tf.reshape(tf.one_hot(number, leaf.size, dtype=dtype), leaf.shape)
        one = tf.one_hot(number, leaf.size // self.examples, dtype=dtype)
        every = tf.broadcast_to(one[tf.newaxis], (self.examples, leaf.size // self.examples))
        return tf.reshape(every, leaf.shape)

    def _rows(self, leaves: Sequence[Any]) -> Callable[[Any], list[Any]]:
        tf = tensorflow()
        sources = self.subject.watched(leaves)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(sources)
            output = self.subject.call(leaves)[self.leaf]
        layer = last_layer(tape, output, sources)

        def row(number: Any) -> list[Any]:
            if layer is None:
                seed = self.seed(number, self.along, output.dtype)
                gradients = tape.gradient(output, sources, seed)
            else:
                seed = layer.seed(number, self.examples)
                gradients = tape.gradient(layer.inputs, sources, seed)
            return [self._flat(g, leaf) for g, leaf in zip(gradients, self.across, strict=True)]

        return row

    def _columns(self, leaves: Sequence[Any]) -> Callable[[Any], list[Any]]:
        tf = tensorflow()
        source = self.subject.watched(leaves)[self.leaf]

        def column(number: Any) -> list[Any]:
            seed = self.seed(number, self.along, self.along.dtype)
            with tf.autodiff.ForwardAccumulator(source, seed) as accumulator:
                outputs = self.subject.call(leaves)
            tangents = [accumulator.jvp(output) for output in outputs]
            return [self._flat(t, leaf) for t, leaf in zip(tangents, self.across, strict=True)]

        return column

    def _flat(self, line: Any, leaf: Leaf) -> Any:
        tf = tensorflow()
        shape = (self.examples, leaf.size // self.examples) if self.examples else (leaf.size,)
        if line is None:
            return tf.zeros(shape, leaf.dtype)
        return tf.reshape(tf.convert_to_tensor(line), shape)


def unconnected(subject: Subject) -> list[tuple[int, int]]:
    """Which outputs have no path to which inputs: those parts of the Jacobian are zero."""
    tf = tensorflow()
    missing: list[tuple[int, int]] = []

    def body(*leaves: Any) -> None:
        sources = subject.watched(leaves)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(sources)
            outputs = subject.call(leaves)
        for row, output in enumerate(outputs):
            gradients = tape.gradient(output, sources)
            missing.extend((row, column) for column, g in enumerate(gradients) if g is None)

    specs = tf.nest.flatten(subject.structure)
    tf.function(body, autograph=False).get_concrete_function(*specs)
    return missing


def step_program(lines: Lines, chunk: int, *, vectorised: bool, narrow: Any = None) -> Any:
    """The compiled program (inputs, first number) → so many lines, as a concrete function."""
    tf = tensorflow()

    def step(leaves: list[Any], first: Any) -> list[Any]:
        numbers = first + tf.range(chunk)
        found = lines.several(leaves, vectorised=vectorised)(numbers)
        return [line if narrow is None else tf.cast(line, narrow) for line in found]

    specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in lines.subject.inputs]
    function = tf.function(step, autograph=False)
    return function.get_concrete_function(specs, tf.TensorSpec((), tf.int32))


def filling_program(
    lines: Lines, chunk: int, *, vectorised: bool, whole: bool, narrow: Any = None
) -> Any:
    """The compiled loop that fills results in place, chunk by chunk.

    It takes inputs, results, the chunks to begin and end with, and the place among all examples of
    the first of these.

    The results are tensors of shape (rows, columns) that the caller allocated. `InplaceUpdate`
    writes into their own memory (tensorflow/core/kernels/inplace_ops.cc, TF 2.21: "this creates an
    alias intentionally"), so that nothing of their size is ever held a second time.

    Returns the sum of all that was written: it is finite only if every entry is.
    """
    tf = tensorflow()
    last = lines.count - chunk

    def fill(leaves: list[Any], results: list[Any], low: Any, high: Any, example: Any) -> Any:
        several = lines.several(leaves, vectorised=vectorised)

        def body(turn: Any, total: Any, *results: Any) -> tuple[Any, ...]:
            # The last chunk begins earlier rather than being smaller: one shape, one program.
            numbers = tf.minimum(turn * chunk, last) + tf.range(chunk)
            found = several(numbers)
            updated = []
            for result, values in zip(results, found, strict=True):
                rows = _places(lines, numbers, example, whole=whole)
                values = tf.reshape(values, (-1, result.shape[1]))  # noqa: PLW2901
                total += _checksum(values)
                narrowed = values if narrow is None else tf.cast(values, narrow)
                updated.append(tf.raw_ops.InplaceUpdate(x=result, i=rows, v=narrowed))
            return (turn + 1, total, *updated)

        state = (low, tf.constant(0.0), *results)
        final = tf.while_loop(lambda turn, *_: turn < high, body, state, parallel_iterations=1)
        # Reading one entry of each makes the loop's writes part of what this function computes.
        touched = [tf.cast(tf.math.real(result[0, 0]), tf.float32) * 0 for result in final[2:]]
        with tf.control_dependencies(touched):
            return tf.identity(final[1])

    subject = lines.subject
    specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in subject.inputs]
    shapes = [
        tf.TensorSpec(result_shape(lines, leaf, whole=whole), narrow or leaf.dtype)
        for leaf in lines.across
    ]
    number = tf.TensorSpec((), tf.int32)
    function = tf.function(fill, autograph=False)
    return function.get_concrete_function(specs, shapes, number, number, number)


def result_shape(lines: Lines, leaf: Leaf, *, whole: bool) -> tuple[int, int]:
    """Rows and columns in which results are filled by rows.

    Of examples that do not mix, each has a row of its own block; in the whole Jacobian (`whole`)
    the places of the other examples, zeros, count as rows too.
    """
    if not lines.examples:
        return lines.count, leaf.size
    total = lines.total or lines.examples
    return lines.count * total * (total if whole else 1), leaf.size // lines.examples


def _places(lines: Lines, numbers: Any, first: Any, *, whole: bool) -> Any:
    tf = tensorflow()
    if not lines.examples:
        return numbers
    examples = (first + tf.range(lines.examples))[tf.newaxis]
    rows = examples * lines.count + numbers[:, tf.newaxis]
    if whole:
        rows = rows * (lines.total or lines.examples) + examples
    return tf.reshape(rows, (-1,))


def _checksum(values: Any) -> Any:
    tf = tensorflow()
    if values.dtype.is_complex:
        return tf.cast(tf.abs(tf.reduce_sum(values)), tf.float32)
    return tf.cast(tf.reduce_sum(values), tf.float32)
