"""The neural tangent kernel J₁·J₂ᵀ, without J: a row of it is a row of J₁, pushed through J₂.

One product back at x₁ and one forward at x₂ give a row, so that as many numbers as there are
weights are held a few times, never outputs × weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError
from snugly.jacobians.computing import Filling
from snugly.jacobians.known import Known, known
from snugly.jacobians.lines import Lines
from snugly.jacobians.plan import Plan, Request
from snugly.jacobians.streaming import opened, store_for, stream
from snugly.jacobians.subject import Leaf, Subject, numpy_dtype, tensorflow, tensors_of
from snugly.progress import shown
from snugly.units import Size

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence


class Pair:
    """The function at two inputs; it stands where a `Subject` does."""

    def __init__(self, left: Subject, right: Subject) -> None:
        self.left, self.right = left, right
        self.title = f"the tangent kernel of {left.title}"
        self.inputs = [*left.inputs, *right.inputs]
        if len(left.outputs) != 1:
            raise InputError("a tangent kernel is that of one output", code="SNG529")
        self.outputs = left.outputs
        self.sources = [Leaf(right.outputs[0].shape, right.outputs[0].dtype)]
        self.random = left.random or right.random
        self.variables, self.concrete = left.variables, left.concrete

    @property
    def activations(self) -> int:
        """Bytes of everything that both forward passes compute."""
        return self.left.activations + self.right.activations


@dataclass(frozen=True, slots=True)
class KernelRows(Lines):
    """The rows of a tangent kernel."""

    def start(self, leaves: Sequence[Any]) -> Callable[[Any], list[Any]]:
        """Run the forward pass at the first input; what is returned computes one row."""
        tf = tensorflow()
        pair: Any = self.subject
        here, there = leaves[: len(pair.left.inputs)], leaves[len(pair.left.inputs) :]
        variables = list(pair.left.variables)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(variables)
            output = pair.left.call(here)[0]

        def row(number: Any) -> list[Any]:
            seed = self.seed(number, self.along, output.dtype)
            gradients = tape.gradient(
                output, variables, seed, unconnected_gradients=tf.UnconnectedGradients.ZERO
            )
            tangents = [tf.convert_to_tensor(gradient) for gradient in gradients]
            with tf.autodiff.ForwardAccumulator(variables, tangents) as accumulator:
                other = pair.right.call(there)[0]
            return [self._flat(accumulator.jvp(other), self.across[0])]

        return row


def ntk(  # noqa: PLR0913 - as `jacobian`
    f: Any,
    x1: Any,
    x2: Any = None,
    memory: int | str | None = None,
    *,
    wrt: Any = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Any:
    """The neural tangent kernel: outputs at `x1` by outputs at `x2`, inside a budget.

    Args:
        f: A Keras model, or a function with `wrt=` its variables.
        x1: The first input.
        x2: The second; None for the first again.
        memory: What may be held beside inputs and weights, the result in memory with it.
        wrt: The variables; a model's trainable ones by default.
        out: A file for the result, `.npy` or `.zarr`.
        overwrite: Whether it may be replaced.
        progress: Called with the finished share.

    Returns:
        A square-able matrix (outputs at x1, outputs at x2), flattened; it goes straight into
        `snugly.linalg.slogdet`, the file too.
    """
    wrt = getattr(f, "trainable_variables", None) if wrt is None else wrt
    if wrt is None:
        raise InputError(
            "which weights is the kernel of?", code="SNG529", hint="ntk(f, x1, wrt=variables)"
        )
    x2 = x1 if x2 is None else x2
    left, right = known(f, x1, wrt), known(f, x2, wrt)
    about: Known = left.program(
        ("kernel", right),
        lambda: Known(Pair(left.subject, right.subject), KernelRows),  # type: ignore[arg-type]
    )
    leaves = [*tensors_of(x1), *tensors_of(x2)]
    budget = None if memory is None else Size(memory)
    request = Request(budget=budget, mode="reverse", streamed=out is not None)
    plan = about.plan(request, leaves)
    with shown(about.subject.title, progress) as report:
        return _computed(about, plan, leaves, out, report, overwrite=overwrite)


def _computed(  # noqa: PLR0913 - what a computation is made of
    about: Known,
    plan: Plan,
    leaves: Sequence[Any],
    out: str | os.PathLike[str] | None,
    report: Callable[[float], None],
    *,
    overwrite: bool,
) -> Any:
    tf = tensorflow()
    output, source = about.subject.outputs[0], about.subject.sources[0]
    if out is None:
        found = Filling(about, plan, whole=True).run(leaves, report)[0][0]
        result = tf.reshape(found, (output.size, source.size))
    else:
        if about.subject.random:
            raise InputError(f"{about.subject.title} draws random numbers", code="SNG528")
        store = store_for(Path(out), (output.size,), (source.size,), numpy_dtype(source.dtype))
        stream(
            about,
            plan,
            store,
            leaves,
            whole=True,
            narrow=None,
            overwrite=overwrite,
            progress=report,
        )
        result = opened(store)
    result.plan, result.method, result.reason = plan, "kernel rows", plan.reason
    result.notes = plan.notes
    return result
