"""The child process that asks what others say about a program's memory.

- `grappler`: `Cluster.DeterminePeakMemoryUsage`, TensorFlow's own estimator;
- `keras`: the bytes of parameters and optimizer variables that `model.summary()` prints;
- `forum`: the formula copied from forums, output elements of all layers times the batch, plus
  parameters, times the bytes of a float.

A peer that cannot answer leaves its reason instead of a number.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.accuracy.zoo import Function, Program, find
from tests.accuracy.zoo.program import Array, model_inputs, model_targets

if TYPE_CHECKING:
    from collections.abc import Callable


def _specs(arrays: tuple[Array, ...], batch: int) -> list[Any]:
    import tensorflow as tf

    return [tf.TensorSpec(array.concrete(batch), array.dtype) for array in arrays]


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values or None


def step_function(program: Program, built: Any, batch: int, mode: str) -> Any:
    """The concrete function of one step, its inputs of fixed shapes."""
    import tensorflow as tf

    if isinstance(built, Function):
        return built.call.get_concrete_function(*built.specs(batch))
    inputs = _specs(model_inputs(program, built), batch)
    if mode == "infer":
        run = tf.function(lambda *x: built(_one_or_all(list(x)), training=False))
        return run.get_concrete_function(*inputs)
    targets = _specs(model_targets(program, built), batch)
    built.optimizer.build(built.trainable_variables)

    @tf.function
    def step(x: Any, y: Any) -> Any:
        return built.train_step((_one_or_all(x), _one_or_all(y)))

    return step.get_concrete_function(inputs, targets)


def grappler(program: Program, built: Any, batch: int, mode: str) -> int:
    """The peak on the CPU that Grappler's static estimator gives for the step's graph."""
    import tensorflow as tf
    from tensorflow.python.grappler import cluster as grappler_cluster
    from tensorflow.python.grappler import item as grappler_item

    step = step_function(program, built, batch, mode)
    graph = step.graph
    meta = tf.compat.v1.train.export_meta_graph(
        graph_def=graph.as_graph_def(add_shapes=True), graph=graph
    )
    fetches = [node.name for node in graph.control_outputs]
    fetches += [tensor.name for tensor in graph.outputs if tensor.dtype != tf.resource]
    meta.collection_def["train_op"].node_list.value.extend(fetches)
    item = grappler_item.Item(meta)
    with grappler_cluster.Provision(disable_detailed_stats=True) as cluster:
        usage = cluster.DeterminePeakMemoryUsage(item)
    return max(int(peak) for peak, _ in usage.values())


def _bytes(variables: list[Any]) -> int:
    import tensorflow as tf

    return sum(math.prod(v.shape) * tf.as_dtype(v.dtype).size for v in variables)


def keras(built: Any, mode: str) -> int:
    """Parameters, and for training the optimizer's variables, as `summary()` counts them."""
    if mode == "infer":
        return _bytes(built.variables)
    built.optimizer.build(built.trainable_variables)
    return _bytes(built.variables) + _bytes(built.optimizer.variables)


def forum(built: Any, batch: int) -> int:
    """The widely copied formula; it knows neither gradients nor optimizers nor lifetimes."""
    number = 4  # bytes of a float32, whatever the layer's dtype: the formula does not ask
    elements = 0
    for layer in built.layers:
        if isinstance(layer.output, (list, tuple)):
            shape = layer.output[0].shape
        else:
            shape = layer.output.shape
        elements += math.prod(size for size in shape if size is not None)
    parameters = sum(math.prod(v.shape) for v in built.weights)
    return number * (batch * elements + parameters)


def _asked(peer: Callable[[], int]) -> int | str:
    try:
        return peer()
    except Exception as error:  # noqa: BLE001 - it may fail in any way; the table says so
        return f"{type(error).__name__}: {str(error)[:200]}"


def ask(program: Program, wanted: list[tuple[int, str]]) -> list[dict[str, Any]]:
    """All peers on one program; Grappler first, as the others do not trace."""
    built = program.build()
    answers: list[dict[str, Any]] = []
    for batch, mode in wanted:
        answer: dict[str, Any] = {"batch": batch, "mode": mode}
        answer["grappler"] = _asked(lambda b=batch, m=mode: grappler(program, built, b, m))
        if not isinstance(built, Function):
            answer["keras"] = _asked(lambda m=mode: keras(built, m))
            answer["forum"] = _asked(lambda b=batch: forum(built, b))
        answers.append(answer)
    return answers


def main() -> None:
    request = json.loads(sys.argv[1])
    wanted = [(batch, mode) for batch, mode in request["wanted"]]
    Path(request["answer"]).write_text(json.dumps(ask(find(request["program"]), wanted)))


if __name__ == "__main__":
    main()
