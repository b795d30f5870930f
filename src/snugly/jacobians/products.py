"""Products with a Jacobian or Hessian that is never formed.

Each takes a few times the memory of the function itself. `memory=` refuses before running where
that is more than was given.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError, MemoryLimitExceeded
from snugly.jacobians.known import Known, known
from snugly.jacobians.memory import transient_of
from snugly.jacobians.subject import Subject, owner_of, tensorflow, tensors_of
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snugly.jacobians.subject import Leaf


def jvp(f: Any, x: Any, v: Any, memory: int | str | None = None, *, wrt: Any = None) -> Any:
    """J·v: how the output changes along a direction `v`, shaped like `x` (or like `wrt`)."""
    about = known(f, x, wrt)
    found = _product(about, "jvp", _push, about.subject.sources, x, v, memory)
    return _like_output(about.subject, found)


def vjp(f: Any, x: Any, u: Any, memory: int | str | None = None, *, wrt: Any = None) -> Any:
    """uᵀ·J: the gradient of the outputs weighted by `u`, shaped like the output."""
    about = known(f, x, wrt)
    found = _product(about, "vjp", _pull, about.subject.outputs, x, u, memory)
    return _like_input(about.subject, found)


def gauss_newton_vp(
    f: Any, x: Any, v: Any, memory: int | str | None = None, *, wrt: Any = None
) -> Any:
    """Jᵀ·J·v: the Gauss-Newton approximation of a least-squares Hessian, times `v`."""
    about = known(f, x, wrt)
    found = _product(about, "gauss-newton", _push_pull, about.subject.sources, x, v, memory)
    return _like_input(about.subject, found)


def hessian_vp(f: Any, x: Any, v: Any, memory: int | str | None = None, *, wrt: Any = None) -> Any:
    """H·v for a function with a single number as its output."""
    about = known(f, x, wrt)
    require_scalar(about.subject)
    found = _product(about, "hessian", _push_gradient, about.subject.sources, x, v, memory)
    return _like_input(about.subject, found)


def hessian(f: Any, x: Any, memory: int | str | None = None, **options: Any) -> Any:
    """The Hessian of a function with a single number as its output, inside a budget.

    It is the Jacobian of the gradient, and takes the options of `snugly.jacobian` but `wrt`.
    """
    from snugly.jacobians.matrix import jacobian

    if options.get("wrt") is not None:
        raise InputError(
            "hessian differentiates by x", code="SNG529", hint="pass the weights as x: f(weights)"
        )
    require_scalar(known(f, x).subject)
    return jacobian(gradient_function(f), x, memory, **options)


def gradient_function(f: Any) -> Callable[[Any], Any]:
    """The function that gives f's gradient; the same object every time, compiled once."""
    owner, name = owner_of(f)
    try:
        made = _gradients.setdefault(owner, {})
    except TypeError:
        return _gradient_of(lambda: f, str(f))
    if name not in made:
        alive = weakref.WeakMethod(f) if name else weakref.ref(f)
        made[name] = _gradient_of(alive, str(getattr(f, "__name__", "f")))
    return made[name]


_gradients: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


def _gradient_of(alive: Callable[[], Any], title: str) -> Callable[[Any], Any]:
    def gradient(x: Any) -> Any:
        tf = tensorflow()
        leaves = tf.nest.flatten(x)
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            value = tf.reshape(alive()(x), ())
        found = tape.gradient(value, leaves, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return tf.nest.pack_sequence_as(x, [tf.convert_to_tensor(g) for g in found])

    gradient.__name__ = f"the gradient of {title}"
    return gradient


def require_scalar(subject: Subject) -> None:
    """Refuse a function of which there is no Hessian."""
    if len(subject.outputs) != 1 or subject.outputs[0].size != 1:
        shapes = ", ".join(str(leaf.shape) for leaf in subject.outputs)
        raise InputError(
            f"a Hessian is that of a single number; {subject.title} returns {shapes}",
            code="SNG520",
            hint="sum it first, or take `snugly.jacobian`",
        )


def product_program(about: Known, name: str, body: Any, vectors: Sequence[Leaf]) -> Any:
    """The compiled program (inputs, vectors) → products, made once."""
    tf = tensorflow()

    def make() -> Any:
        specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in about.subject.inputs]
        shapes = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in vectors]

        def product(leaves: list[Any], vectors: list[Any]) -> list[Any]:
            return body(about.subject, leaves, vectors)

        return tf.function(product, autograph=False).get_concrete_function(specs, shapes)

    return about.program(("product", name), make)


def _product(  # noqa: PLR0913, PLR0917 - what a product is made of
    about: Known,
    name: str,
    body: Any,
    vectors: Sequence[Leaf],
    x: Any,
    v: Any,
    memory: int | str | None,
) -> list[Any]:
    tf = tensorflow()
    given = [
        tf.convert_to_tensor(part, leaf.dtype)
        for part, leaf in zip(tf.nest.flatten(v), vectors, strict=False)
    ]
    shapes = [tuple(part.shape) for part in given]
    if shapes != [leaf.shape for leaf in vectors]:
        expected = ", ".join(str(leaf.shape) for leaf in vectors)
        raise InputError(
            f"the vector must have the shape {expected}, not {', '.join(map(str, shapes))}",
            code="SNG529",
        )
    program = product_program(about, name, body, vectors)
    if memory is not None:
        _require(about, name, program, Size(memory))
    return list(program(tensors_of(x), given))


def _require(about: Known, name: str, program: Any, budget: Size) -> None:
    ahead = about.subject.activations
    needed = about.program(("memory", name), lambda: transient_of(program, None, ahead)[0])
    if needed > budget:
        raise MemoryLimitExceeded(
            f"this product with the Jacobian of {about.subject.title} needs at least"
            f" {Size(needed)} ({needed:,} bytes, predicted); {budget} was given",
            code="SNG521",
            hint=f"`memory={needed}` is enough",
        )


def _push(subject: Subject, leaves: list[Any], vectors: list[Any]) -> list[Any]:
    tf = tensorflow()
    sources = subject.watched(leaves)
    try:
        with tf.autodiff.ForwardAccumulator(sources, vectors) as accumulator:
            outputs = subject.call(leaves)
        found = [accumulator.jvp(output) for output in outputs]
    except TypeError:  # lists of tensors (map_fn, recurrent layers) have no forward mode
        found = _push_by_pulling(subject, leaves, vectors)
    return [_or_zeros(y, leaf) for y, leaf in zip(found, subject.outputs, strict=True)]


def _push_by_pulling(subject: Subject, leaves: list[Any], vectors: list[Any]) -> list[Any]:
    """J·v as the derivative of uᵀ·J by u, which is linear in u."""
    tf = tensorflow()
    sources = subject.watched(leaves)
    weights = [tf.zeros(leaf.shape, leaf.dtype) for leaf in subject.outputs]
    with tf.GradientTape() as outer:
        outer.watch(weights)
        with tf.GradientTape() as inner:
            inner.watch(sources)
            outputs = subject.call(leaves)
        pulled = inner.gradient(outputs, sources, weights)
        pairs = [(g, v) for g, v in zip(pulled, vectors, strict=True) if g is not None]
    return outer.gradient([g for g, _ in pairs], weights, [v for _, v in pairs])


def _pull(subject: Subject, leaves: list[Any], vectors: list[Any]) -> list[Any]:
    tf = tensorflow()
    sources = subject.watched(leaves)
    with tf.GradientTape() as tape:
        tape.watch(sources)
        outputs = subject.call(leaves)
    found = tape.gradient(outputs, sources, vectors)
    return [_or_zeros(g, leaf) for g, leaf in zip(found, subject.sources, strict=True)]


def _push_pull(subject: Subject, leaves: list[Any], vectors: list[Any]) -> list[Any]:
    return _pull(subject, leaves, _push(subject, leaves, vectors))


def _push_gradient(subject: Subject, leaves: list[Any], vectors: list[Any]) -> list[Any]:
    tf = tensorflow()
    sources = subject.watched(leaves)
    with tf.autodiff.ForwardAccumulator(sources, vectors) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(sources)
            outputs = subject.call(leaves)
        gradients = tape.gradient(outputs, sources)
        gradients = [None if g is None else tf.convert_to_tensor(g) for g in gradients]
    return [
        _or_zeros(None if g is None else accumulator.jvp(g), leaf)
        for g, leaf in zip(gradients, subject.sources, strict=True)
    ]


def _or_zeros(tensor: Any, leaf: Leaf) -> Any:
    tf = tensorflow()
    return tf.zeros(leaf.shape, leaf.dtype) if tensor is None else tf.convert_to_tensor(tensor)


def _like_output(subject: Subject, found: Sequence[Any]) -> Any:
    tf = tensorflow()
    return tf.nest.pack_sequence_as(tf.nest.map_structure(lambda _: 0, subject.result), found)


def _like_input(subject: Subject, found: Sequence[Any]) -> Any:
    tf = tensorflow()
    structure = subject.structure if subject.wrt is None else subject.wrt
    return tf.nest.pack_sequence_as(tf.nest.map_structure(lambda _: 0, structure), found)


def entries(leaves: Sequence[Leaf]) -> int:
    """How many numbers some tensors have."""
    return sum(math.prod(leaf.shape) for leaf in leaves)
