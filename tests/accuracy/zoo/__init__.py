"""The programs on which accuracy is measured: stock Keras and TensorFlow, random weights."""

from tests.accuracy.zoo import applications, functions, images, linear, sequences, training
from tests.accuracy.zoo.program import FIRST, HELD_OUT, REGISTRY, Array, Function, Program

__all__ = ["FIRST", "HELD_OUT", "REGISTRY", "Array", "Function", "Program", "find", "select"]

_ROOMS = (applications, functions, images, linear, sequences, training)  # importing fills REGISTRY


def find(name: str) -> Program:
    """The program of that name, or an error that lists the near ones."""
    if name in REGISTRY:
        return REGISTRY[name]
    near = [known for known in REGISTRY if name.lower() in known.lower()] or sorted(REGISTRY)
    raise SystemExit(f"error: no program is called {name!r}\n\nhint: one of {', '.join(near)}")


def select(
    *, quick: bool = False, held_out: bool = False, only: tuple[str, ...] = ()
) -> list[Program]:
    """The programs a run covers: those named, those held out, or all others."""
    if only:
        return [find(name) for name in only]
    chosen = [p for p in REGISTRY.values() if (HELD_OUT in p.tags) == held_out]
    return [p for p in chosen if FIRST in p.tags] if quick and not held_out else chosen
