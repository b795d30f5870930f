"""Whether a teacher can teach a student: what both take, give and own."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from snugly.errors import InputError


def check_pair(student: Any, teacher: Any) -> None:
    """Refuse a teacher that cannot teach this student, as far as both say."""
    for role, model in (("student", student), ("teacher", teacher)):
        _check_model(role, model)
    if student is teacher:
        raise InputError("a model cannot be its own teacher", code="SNG534")
    learnt = {id(weight): weight.path for weight in student.trainable_weights}
    shared = [learnt[id(weight)] for weight in teacher.weights if id(weight) in learnt]
    if shared:
        raise InputError(
            f"the student would change its teacher: both have {shared[0]}"
            + (f" and {len(shared) - 1} weights more" * (len(shared) > 1)),
            code="SNG534",
            hint="give the student layers of its own, or freeze those it shares: trainable = False",
        )
    _check_shapes(student, teacher)


def check_numbers(alpha: Any, temperature: Any) -> None:
    """Refuse a share or a temperature that cannot be."""
    if not (isinstance(alpha, Real) and 0 <= float(alpha) <= 1):
        raise InputError(
            f"alpha must be between 0 and 1, not {alpha!r:.40}",
            code="SNG534",
            hint="alpha=0.1 hears the data for a tenth and the teacher for the rest",
        )
    if not (isinstance(temperature, Real) and 0 < float(temperature) < math.inf):
        raise InputError(
            f"the temperature must be above 0, not {temperature!r:.40}",
            code="SNG534",
            hint="temperature=3 softens classes, 1 leaves them as they are",
        )


def _check_model(role: str, model: Any) -> None:
    import keras

    if not isinstance(model, keras.Model):
        raise InputError(
            f"the {role} must be a Keras model, not {type(model).__name__}", code="SNG534"
        )
    outputs = getattr(model, "outputs", None) or ()
    if len(outputs) > 1:
        raise InputError(
            f"the {role} {model.name} has {len(outputs)} outputs; a distiller compares one",
            code="SNG534",
            hint="distil one at a time: keras.Model(model.inputs, model.outputs[0])",
        )


def _check_shapes(student: Any, teacher: Any) -> None:
    """Refuse what the first step would stumble over, where both say what they take and give."""
    taken, given = (
        [_shapes_of(model, which) for model in (student, teacher)]
        for which in ("inputs", "outputs")
    )
    if all(len(shapes) == 1 for shapes in taken):
        (student_takes,), (teacher_takes,) = taken
        # Of other ranks Keras makes one; of several inputs a teacher may take some.
        if len(student_takes) == len(teacher_takes) and any(
            None not in sizes and sizes[0] != sizes[1]
            for sizes in zip(student_takes[1:], teacher_takes[1:], strict=True)
        ):
            raise differ("takes", teacher_takes, student_takes)
    if all(given):
        (student_gives,), (teacher_gives,) = given
        if student_gives[1:] != teacher_gives[1:]:
            raise differ("gives", teacher_gives, student_gives)


def _shapes_of(model: Any, which: str) -> list[tuple[int | None, ...]]:
    return [tuple(tensor.shape) for tensor in getattr(model, which, None) or ()]


def differ(what: str, teacher: Any, student: Any) -> InputError:
    """The error where both take or give other shapes."""
    return InputError(
        f"the teacher {what} {tuple(teacher)}, and the student {tuple(student)}",
        code="SNG534",
        hint="both have to take inputs and give outputs of the same shape",
    )
