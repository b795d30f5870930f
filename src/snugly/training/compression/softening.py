"""What a student learns from its teacher's outputs: which loss there is between the two.

Classes are compared after both outputs were divided by the temperature, as logits (Hinton et al.,
2015, arXiv:1503.02531); the loss is multiplied by its square, so that its gradient keeps its size.
Probabilities are turned into logits first: they say the same but for a constant. Numbers are
compared as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from snugly.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

Meaning: TypeAlias = Literal["classes", "yes or no", "numbers"]

_MEANINGS: Final[dict[str, Meaning]] = {
    "categoricalcrossentropy": "classes",
    "sparsecategoricalcrossentropy": "classes",
    "categoricalfocalcrossentropy": "classes",
    "kldivergence": "classes",
    "binarycrossentropy": "yes or no",
    "binaryfocalcrossentropy": "yes or no",
    "meansquarederror": "numbers",
    "meanabsoluteerror": "numbers",
    "huber": "numbers",
    "logcosh": "numbers",
}
"""What outputs mean, by the loss that they are trained with."""


def meaning_of(loss: Any) -> Meaning | None:
    """What a model's outputs mean, as far as its loss says."""
    name = getattr(loss, "__name__", None) or type(loss).__name__
    return _MEANINGS.get(name.replace("_", "").lower())


def resolved(loss: Any) -> Any:
    """The loss that a name, a function, an object or a list of one stands for."""
    import keras

    if isinstance(loss, dict):
        loss = list(loss.values())
    if isinstance(loss, (list, tuple)):
        if len(loss) != 1:
            raise InputError(
                f"a distiller has one output and one loss, not {len(loss)}", code="SNG534"
            )
        loss = loss[0]
    return keras.losses.get(loss)


def are_logits(model: Any, loss: Any = None) -> bool | None:
    """Whether a model gives logits: by its last layer, else by its loss; None if neither says."""
    activation = _last_activation(model)
    if activation in {"softmax", "sigmoid"}:
        return False
    if activation == "linear":
        return True
    if loss is None:
        return None
    return bool(getattr(loss, "from_logits", False))


def _last_activation(model: Any) -> str | None:
    """The name of the activation of the last layer; None where it is not known."""
    import keras

    outputs = getattr(model, "outputs", None) or ()
    tensor = outputs[0] if len(outputs) == 1 else None
    while tensor is not None:
        history: Any = getattr(tensor, "_keras_history", None)
        operation = getattr(history, "operation", None)
        if isinstance(operation, keras.Model):
            return _last_activation(operation)
        if isinstance(operation, keras.layers.Softmax):
            return "softmax"
        name = getattr(getattr(operation, "activation", None), "__name__", None)
        if not isinstance(operation, (keras.layers.Activation, keras.layers.Identity)):
            return name
        if name not in {None, "linear"}:
            return name
        inbound = operation._inbound_nodes[history.node_index]  # noqa: SLF001  # how Keras finds it
        tensor = inbound.input_tensors[0]
    return None


def soft_loss(
    meaning: Meaning, temperature: float, *, teacher_logits: bool, student_logits: bool
) -> Any:
    """A loss between a teacher's outputs and a student's, weighted and summed up as Keras does."""
    import keras

    ops: Any = keras.ops

    def logits(outputs: Any, given: bool) -> Any:
        if given:
            return outputs / temperature
        least = keras.config.epsilon()
        sure = ops.clip(outputs, least, 1.0 - least)
        if meaning == "classes":
            return ops.log(sure) / temperature
        return (ops.log(sure) - ops.log(1.0 - sure)) / temperature

    def of_classes(teacher: Any, student: Any) -> Any:
        wanted = ops.log_softmax(logits(teacher, teacher_logits), axis=-1)
        found = ops.log_softmax(logits(student, student_logits), axis=-1)
        return temperature**2 * ops.sum(ops.exp(wanted) * (wanted - found), axis=-1)

    def of_answers(teacher: Any, student: Any) -> Any:
        wanted, found = logits(teacher, teacher_logits), logits(student, student_logits)
        yes = ops.sigmoid(wanted) * (ops.log_sigmoid(wanted) - ops.log_sigmoid(found))
        no = ops.sigmoid(-wanted) * (ops.log_sigmoid(-wanted) - ops.log_sigmoid(-found))
        return temperature**2 * ops.mean(yes + no, axis=-1)

    def of_numbers(teacher: Any, student: Any) -> Any:
        return ops.mean((teacher - student) ** 2, axis=-1)

    chosen = {"classes": of_classes, "yes or no": of_answers, "numbers": of_numbers}[meaning]
    return as_loss(chosen)


def as_loss(given: str | Callable[[Any, Any], Any]) -> Any:
    """A function of the teacher's and the student's outputs as a loss of Keras."""
    import keras

    function: Any = keras.losses.get(given) if isinstance(given, str) else given
    if isinstance(function, keras.losses.Loss):
        return function

    class Between(keras.losses.Loss):
        """One value for each example, reduced as Keras reduces losses."""

        def call(self, y_true: Any, y_pred: Any) -> Any:
            return function(y_true, y_pred)

    return Between(name="distillation")
