"""The diagonal of a Jacobian, without the rest of it.

Where each output depends on its own input alone, which a few products settle, one more product is
the diagonal. Otherwise rows are computed in chunks, and one number of each is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from snugly.errors import InputError
from snugly.jacobians.known import Known, known
from snugly.jacobians.plan import Request
from snugly.jacobians.products import _pull as pull
from snugly.jacobians.products import product_program
from snugly.jacobians.settling import settle
from snugly.jacobians.subject import tensorflow, tensors_of
from snugly.progress import shown
from snugly.readers.host_memory import array_of
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def diagonal(
    f: Any,
    x: Any,
    memory: int | str | None = None,
    *,
    progress: Callable[[float], None] | None = None,
) -> Any:
    """The derivative of each output by the input in the same place, shaped like `x`.

    Args:
        f: A function whose output has as many numbers as `x`.
        x: One tensor or array.
        memory: What may be held beside inputs and weights.
        progress: Called with the finished share.
    """
    tf = tensorflow()
    about, leaves = known(f, x), tensors_of(x)
    subject = about.subject
    if len(subject.outputs) != 1 or len(subject.sources) != 1:
        raise InputError("a diagonal is that of one input and one output", code="SNG529")
    output, source = subject.outputs[0], subject.sources[0]
    if output.size != source.size:
        raise InputError(
            f"{output.size:,} outputs and {source.size:,} inputs have no diagonal between them",
            code="SNG529",
        )
    program = product_program(about, "vjp", pull, subject.outputs)
    if _is_diagonal(program, leaves, output.size, output.shape, output.dtype):
        ones = tf.ones(output.shape, output.dtype)
        return tf.reshape(program(list(leaves), [ones])[0], source.shape)
    budget = None if memory is None else Size(memory)
    with shown(f"diagonal of {subject.title}", progress) as report:
        return _by_rows(about, leaves, budget, report)


def _is_diagonal(
    program: Any, leaves: Sequence[Any], size: int, shape: tuple[int, ...], dtype: Any
) -> bool:
    """Whether outputs of some places have no gradient at any other place, for each bit of them."""
    tf = tensorflow()
    numbers = np.arange(size)
    draw = np.random.default_rng(7)
    for bit in range(max(1, (size - 1).bit_length())):
        for side in (0, 1):
            chosen = (numbers >> bit & 1) == side
            weights = np.where(chosen, draw.uniform(0.5, 1.5, size), 0.0).reshape(shape)
            found = program(list(leaves), [tf.cast(tf.constant(weights), dtype)])[0]
            if np.any(array_of(found).reshape(-1)[~chosen] != 0):
                return False
    return True


def _by_rows(
    about: Known,
    leaves: Sequence[Any],
    budget: Size | None,
    report: Callable[[float], None],
) -> Any:
    tf = tensorflow()
    source = about.subject.sources[0]
    # As if streamed: the rows are not kept.
    plan = settle(about, Request(budget=budget, mode="reverse", streamed=True), leaves)
    portion = plan.portions[0]
    lines = portion.lines
    program = about.step(lines, portion.chunk, vectorised=portion.vectorised)
    kept = np.empty(source.size, array_of(leaves[0]).dtype)
    last = lines.count - portion.chunk
    for turn in range(portion.turns):
        first = min(turn * portion.chunk, last)
        rows = array_of(program(list(leaves), tf.constant(first))[0])
        numbers = np.arange(first, first + portion.chunk)
        if lines.examples:
            examples = np.arange(lines.examples)[:, np.newaxis] * lines.count
            kept[examples + numbers] = rows[np.arange(portion.chunk), :, numbers].T
        else:
            kept[numbers] = rows[np.arange(portion.chunk), numbers]
        del rows  # or they would live on beside the next chunk
        report((turn + 1) / portion.turns)
    return tf.reshape(tf.constant(kept), source.shape)
