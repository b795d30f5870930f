"""Whether XLA compiles a program as a whole: as asked, as the program says, or as Keras decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.readers.machine import has_gpu

if TYPE_CHECKING:
    from snugly.readers.node import Machine

ASSUMED = (
    'assumed that XLA compiles the step, as Keras does where there is a GPU (jit_compile="auto");'
    " if yours does not, say jit_compile=False (on the command line --runtime tensorflow)"
)
STANDS_IN = (
    "what XLA makes of a program for a GPU is known only on a machine with one; it is predicted op"
    " by op instead, so the range is wider"
)
UNSUPPORTED = (
    "not compiled with XLA, although asked to: a layer of the model says that it cannot be"
)


@dataclass(frozen=True, slots=True)
class Compiling:
    """The decision, and what the user should know about it."""

    # XLA compiles the program as a whole, and can be asked here what it would allocate.
    whole: bool = False
    # It would, on a machine that is not this one.
    elsewhere: bool = False
    notes: tuple[str, ...] = ()


def compiling(program: Any, asked: bool | None, machine: Machine) -> Compiling:
    """Decide for a Keras model or a function."""
    import keras

    if not isinstance(program, keras.Model):
        # A tf.function keeps its wish to itself.
        wish = getattr(program, "_jit_compile", None) if asked is None else asked
        return _compiled_on(machine) if wish else Compiling()
    if not supports_xla(program):
        return Compiling(notes=(UNSUPPORTED,) if asked else ())
    if asked is not None:
        return _compiled_on(machine) if asked else Compiling()
    if program.jit_compile:
        return _compiled_on(machine)
    # Keras decided when the model was compiled, here; on a machine with a GPU it decides otherwise.
    if machine.device == "gpu" and not has_gpu() and not program.run_eagerly:
        return _compiled_on(machine, ASSUMED)
    return Compiling()


def supports_xla(model: Any) -> bool:
    """Keras runs a model op by op, with a warning, when one of its layers says no.

    Layers that cuDNN computes say so only when they have been traced.
    """
    layers = model._flatten_layers()  # noqa: SLF001 - Keras has no public way to inner layers
    return all(layer.supports_jit for layer in layers)


def _compiled_on(machine: Machine, *notes: str) -> Compiling:
    if machine.device == "gpu" and not has_gpu():
        return Compiling(elsewhere=True, notes=(*notes, STANDS_IN))
    return Compiling(whole=True, notes=notes)
