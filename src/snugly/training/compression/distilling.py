"""The methods of `snugly.training.Distiller`: a student that learns from data and a teacher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from snugly.errors import InputError
from snugly.predicting import predict
from snugly.readers.dimensions import Dimensions
from snugly.readers.keras_model import input_specs
from snugly.training.compression.matching import check_numbers, check_pair, differ
from snugly.training.compression.plan import footprint
from snugly.training.compression.softening import (
    are_logits,
    as_loss,
    meaning_of,
    resolved,
    soft_loss,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from snugly.devices import Device
    from snugly.planning.safety import Safety
    from snugly.predicting import Prediction
    from snugly.training.compression.plan import Footprint


@dataclass(frozen=True, slots=True)
class DistillationPlan:
    """What distilling costs while it runs, and what the student saves afterwards."""

    teacher: Footprint
    """Its weights, which stay in memory while the student learns, and its inference."""
    student: Footprint
    step: Prediction
    """One training step of the student, the teacher's answers included."""

    @property
    def safety(self) -> Safety:
        """A student is another model than its teacher."""
        return "changes-training"

    def __str__(self) -> str:
        teacher, student = self.teacher, self.student
        return (
            f"a distilling step takes {self.step.peak} (predicted, at most {self.step.high};"
            " changes-training)\n"
            f"  of which the teacher's weights: {teacher.weights} (counted)\n"
            f"  weights     {teacher.weights} → {student.weights}"
            f" ({teacher.parameters:,} → {student.parameters:,} parameters, counted)\n"
            f"  inference   {teacher.peak} → {student.peak} (predicted)"
        )


class Distilling:
    """A student that learns from the data and from a teacher's answers at once.

    ::

        distiller = snugly.training.Distiller(student, teacher, alpha=0.1, temperature=4)
        distiller.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        print(distiller.plan(batch_size=32))
        distiller.fit(x, y)
        distiller.save("student.keras")

    It is trained, evaluated and asked as the student alone: `evaluate` gives the student's loss and
    metrics, `save` and `save_weights` write the student. The teacher is run without training, is
    not changed, and is no part of what is saved.

    Args:
        student: the model that learns; it has one output.
        teacher: a trained model that takes the same input and gives an output of the same shape.
        alpha: the share of the loss that compares with the data; the rest compares with the
            teacher. Regularisation of the student is added in full.
        temperature: what logits are divided by before classes are compared: the higher, the more
            the student sees of what the teacher thinks possible.
        distillation_loss: a loss of Keras's, or a function of the teacher's and the student's
            outputs, in the place of what is chosen by the loss given to `compile`: divergence of
            softened classes for a cross-entropy, squared differences for numbers.
        teacher_from_logits: whether the teacher gives logits, where its last layer does not say.
    """

    if TYPE_CHECKING:
        losses: list[Any]
        loss: Any
        teacher: Any

    def __init__(  # noqa: PLR0913, PLR0917  # the public contract
        self,
        student: Any,
        teacher: Any,
        alpha: float = 0.1,
        temperature: float = 3.0,
        distillation_loss: str | Callable[[Any, Any], Any] | None = None,
        teacher_from_logits: bool | None = None,
        **options: Any,
    ) -> None:
        import keras

        check_pair(student, teacher)
        check_numbers(alpha, temperature)
        # What a student in half precision needs of an optimizer, the distiller is asked for.
        policies = [layer.dtype_policy for layer in student._flatten_layers()]  # noqa: SLF001
        mixed = [policy for policy in policies if policy.name == "mixed_float16"]
        options.setdefault("dtype", mixed[0] if mixed else student.dtype_policy)
        super().__init__(autocast=False, **options)  # type: ignore[call-arg]
        self.student = student
        # Not tracked: neither trained, counted nor saved with the student.
        object.__setattr__(self, "teacher", teacher)
        self.alpha, self.temperature = float(alpha), float(temperature)
        self.distillation_loss = distillation_loss
        self.teacher_from_logits = teacher_from_logits
        self._between: Any = None
        self._parts = [keras.metrics.Mean(name=name) for name in ("student_loss", "teacher_loss")]

    def call(self, inputs: Any, training: Any = None) -> Any:
        """What the student gives."""
        return self.student(inputs, training=training)

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, *more: Any, **options: Any
    ) -> None:
        """As any model is compiled; the loss is that between the student and the data."""
        self._between = self._loss_between(loss)
        super().compile(optimizer, loss, *more, **options)  # type: ignore[misc]

    def _loss_between(self, loss: Any) -> Any:
        if loss is None and self.alpha:
            raise InputError(
                f"alpha is {self.alpha:g}, but there is no loss that compares with the data",
                code="SNG534",
                hint='compile("adam", loss="mse"), or alpha=0 to learn from the teacher alone',
            )
        if self.distillation_loss is not None:
            return as_loss(self.distillation_loss)
        given = None if loss is None else resolved(loss)
        meaning = None if given is None else meaning_of(given)
        if meaning is None:
            name = getattr(given, "__name__", type(given).__name__)
            raise InputError(
                f"the loss {name} does not say what the teacher's outputs mean"
                if loss is not None
                else "without a loss, nothing says what the teacher's outputs mean",
                code="SNG534",
                hint='give distillation_loss="mse", or a function of the two outputs',
            )
        teacher = self.teacher_from_logits
        teacher = are_logits(self.teacher) if teacher is None else teacher
        if teacher is None and meaning != "numbers":
            raise InputError(
                f"nothing says whether {self.teacher.name} gives logits or probabilities",
                code="SNG534",
                hint="give teacher_from_logits=True or False",
            )
        student = bool(are_logits(self.student, given))
        return soft_loss(
            meaning, self.temperature, teacher_logits=bool(teacher), student_logits=student
        )

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """The loss against the data; in training, mixed with that against the teacher."""
        import keras

        ops: Any = keras.ops
        student_part, teacher_part = self._parts
        compared = self.loss is not None
        # Every loss of Keras's includes the regularisation, which is not to be shared out.
        own = super().compute_loss(x, y, y_pred, sample_weight) if compared else 0.0  # type: ignore[misc]
        if compared:
            student_part.update_state(own)
        if compared and not training:
            return own
        answers = ops.stop_gradient(ops.cast(self.teacher(x, training=False), "float32"))
        if tuple(answers.shape[1:]) != tuple(y_pred.shape[1:]):
            raise differ("gives", answers.shape, y_pred.shape)
        taught = self._between(answers, ops.cast(y_pred, "float32"), sample_weight)
        teacher_part.update_state(taught)
        regular = sum(self.losses) if self.losses else 0.0
        if not compared:
            return taught + regular
        return self.alpha * own + (1.0 - self.alpha) * (taught + regular)

    def test_step(self, data: Any) -> dict[str, Any]:
        """As Keras does; what only training knows is left out."""
        found = super().test_step(data)  # type: ignore[misc]
        return {name: value for name, value in found.items() if name not in self._part_names()}

    def _part_names(self) -> set[str]:
        return {part.name for part in self._parts}

    def plan(
        self,
        *example: Any,
        batch_size: int | None = None,
        memory: str | SupportsIndex | None = None,
        device: str | Device | None = None,
        dimensions: Mapping[str, int] | None = None,
    ) -> DistillationPlan:
        """What a step takes, the teacher included, and what the student saves; nothing is run."""
        given = example or (input_specs(self.student, Dimensions(batch_size, dimensions or {})),)
        step = predict(
            self, *given, batch_size=batch_size, training=True, memory=memory, device=device
        )

        def alone(model: Any) -> Footprint:
            if not model.built:  # its weights are not there to be counted
                raise InputError(
                    f"{model.name} is not built: nobody knows its weights yet",
                    code="SNG103",
                    hint=f"call {model.name} once on an example before",
                )
            return footprint(model, predict(model, given[0], batch_size=batch_size, device=device))

        return DistillationPlan(alone(self.teacher), alone(self.student), step)

    def save(self, filepath: Any, *options: Any, **more: Any) -> Any:
        """Save the student, as a model that stands alone."""
        return self.student.save(filepath, *options, **more)

    def save_weights(self, filepath: Any, *options: Any, **more: Any) -> Any:
        """Save the student's weights."""
        return self.student.save_weights(filepath, *options, **more)

    def load_weights(self, filepath: Any, *options: Any, **more: Any) -> Any:
        """Load the student's weights."""
        return self.student.load_weights(filepath, *options, **more)

    def get_config(self) -> dict[str, Any]:
        """Refused: a distiller is made, used, and not kept."""
        raise InputError("a distiller has no configuration of its own to save", code="SNG535")
