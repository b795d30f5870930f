"""A second model compiled as the first one is: with its very losses, or with copies."""

from __future__ import annotations

from typing import Any, Final

_OF_THE_FIRST: Final = {"call", "train_step", "optimizer", "history"}
"""What this package, or Keras, hangs on one model and must not be on another."""


def compile_like(made: Any, model: Any) -> None:
    """Compile a model like another; a model that is not compiled leaves it as it is.

    The objects that were given to `compile` are used again, not copies made from their
    configurations: a loss of the user's own need not be registered with Keras, and what its
    configuration leaves out is not lost.
    """
    import keras

    if not getattr(model, "compiled", False):
        return
    kind = type(model)
    if kind.compile_from_config is not keras.Model.compile_from_config:
        made.compile_from_config(model.get_compile_config())
        made.optimizer = model.optimizer
        return
    settings = _settings_of(model)
    settings["optimizer"] = model.optimizer  # as it is: built, perhaps wrapped to scale losses
    keras.Model.compile(made, **settings)
    if compiles_by_itself(model):
        _copy_attributes(made, model)


def compile_anew(made: Any, model: Any) -> None:
    """Compile a model of other weights like another: its metrics and optimizer start from nothing.

    What a `compile` of the user's own does beside is not done.
    """
    import keras

    if not getattr(model, "compiled", False) or model.optimizer is None:
        return

    def anew(given: Any) -> Any:
        return type(given).from_config(given.get_config())

    def metric(given: Any) -> Any:
        return anew(given) if isinstance(given, keras.metrics.Metric) else given

    settings = _settings_of(model)
    settings["optimizer"] = anew(model.optimizer)
    for name in ("metrics", "weighted_metrics"):
        settings[name] = keras.tree.map_structure(metric, settings.get(name))
    keras.Model.compile(made, **settings)


def compiles_by_itself(model: Any) -> bool:
    """Whether a model is of a class with a `compile` of its own."""
    import keras

    return type(model).compile is not keras.Model.compile


def _settings_of(model: Any) -> dict[str, Any]:
    """What was given to Keras's own `compile`: the very objects; all else gives copies."""
    return dict(model._compile_config.config)  # noqa: SLF001


def _copy_attributes(made: Any, model: Any) -> None:
    """What a `compile` of the user's own left on the model: further losses, optimizers, weights."""
    for name, value in vars(model).items():
        if not name.startswith("_") and name not in _OF_THE_FIRST and name not in vars(made):
            setattr(made, name, value)
