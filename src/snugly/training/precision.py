"""A model that computes in half precision and keeps its weights in float32."""

from __future__ import annotations

from typing import Any

from snugly.errors import InputError


def mixed(model: Any, policy: str) -> Any:
    """A copy of a model, with copies of its weights, whose layers compute by a mixed policy.

    Layers whose results leave the model stay in float32, so that losses and users see what they
    saw. The optimizer is made anew from its configuration, with loss scaling for float16.
    """
    import keras

    last = {layer.name for layer in getattr(model, "_output_layers", ()) or model.layers[-1:]}

    def convert(layer: Any) -> Any:
        configuration = layer.get_config()
        if layer.name not in last and layer.dtype_policy.name == "float32":
            configuration["dtype"] = policy
        return type(layer).from_config(configuration)

    try:
        made = keras.models.clone_model(model, clone_function=convert)
        made.set_weights(model.get_weights())
    except (TypeError, ValueError, NotImplementedError) as problem:
        raise InputError(
            f"{model.name} cannot be copied layer by layer: {str(problem).splitlines()[0][:200]}",
            code="SNG549",
        ) from problem
    made.compile_from_config(model.get_compile_config())
    return made
