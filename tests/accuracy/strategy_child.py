"""A process of a distributed training run: does what its parent says on its standard input.

Started by `strategies.py`, with the allocator's counting switched on. Every line that comes in is
a JSON list, a command and its arguments; every line that goes out is the JSON answer. TensorFlow's
own messages go to the standard error.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

from tests.accuracy.worker import memory, reset
from tests.accuracy.zoo import find
from tests.accuracy.zoo.program import draw, model_inputs, model_targets

FIT_STEPS = 4


class Trainer:
    """One process that computes: the whole of a mirrored run, or one worker of several."""

    def __init__(self, kind: str, replicas: int) -> None:
        import tensorflow as tf

        if kind == "mirrored":
            (processor,) = tf.config.list_physical_devices("CPU")
            devices = [tf.config.LogicalDeviceConfiguration() for _ in range(replicas)]
            tf.config.set_logical_device_configuration(processor, devices)
            self.strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
        elif kind == "multiworker":
            self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        else:
            self.strategy = tf.distribute.get_strategy()

    def build(self, program: str, batch: int) -> int:
        """Build the model and fetch a batch; `batch` is that of all replicas together."""
        import tensorflow as tf

        found = find(program)
        with self.strategy.scope():
            self.model = prepared(found, batch)
        self.dataset = dataset_of(found, self.model, batch)
        iterator = iter(self.strategy.experimental_distribute_dataset(self.dataset))
        self.data = next(iterator)
        del iterator

        @tf.function
        def step(data: Any) -> Any:
            return self.strategy.run(self.model.train_step, args=(data,))

        self.step = step
        self.step(self.data)
        reset()
        return memory()["current"]

    def steps(self, count: int) -> list[int]:
        """The peak of each of so many steps."""
        peaks = []
        for _ in range(count):
            reset()
            self.step(self.data)
            peaks.append(memory()["peak"])
        return peaks

    def fit(self) -> int:
        """The peak of Keras's own loop, after one that warmed it up."""
        for _ in range(2):
            reset()
            self.model.fit(self.dataset, steps_per_epoch=FIT_STEPS, verbose=0)
        return memory()["peak"]


class Server:
    """A worker or parameter server that runs what a coordinator sends."""

    def __init__(self, job: str, index: int) -> None:
        import tensorflow as tf

        cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
        self.server = tf.distribute.Server(
            tf.train.ClusterSpec(cluster), job_name=job, task_index=index, protocol="grpc"
        )

    def reset(self) -> int:
        """Forget the peak; what is in use now."""
        reset()
        return memory()["current"]

    def peak(self) -> int:
        return memory()["peak"]


class Coordinator:
    """Sends steps to workers; holds no tensors worth counting."""

    def __init__(self) -> None:
        import tensorflow as tf

        cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(cluster), rpc_layer="grpc"
        )
        self.strategy = tf.distribute.ParameterServerStrategy(resolver)
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(self.strategy)

    def build(self, program: str, batch: int) -> list[list[Any]]:
        """Build the model on the servers; where each variable is. `batch` is each worker's own."""
        import tensorflow as tf

        found = find(program)
        with self.strategy.scope():
            self.model = prepared(found, batch)

        def distributed() -> Any:
            return dataset_of(found, self.model, batch)

        @tf.function
        def step(iterator: Any) -> Any:
            return self.strategy.run(self.model.train_step, args=(next(iterator),))

        self.step = step
        self.iterator = iter(self.coordinator.create_per_worker_dataset(distributed))
        self.steps(4)
        variables = [*self.model.variables, *self.model.optimizer.variables]
        return [[one.path, str(one.value.device)] for one in variables]

    def steps(self, count: int) -> int:
        for _ in range(count):
            self.coordinator.schedule(self.step, args=(self.iterator,))
        self.coordinator.join()
        return count


def prepared(program: Any, batch: int) -> Any:
    """The model with all that Keras would build in its first step: slots, metrics."""
    model = program.build()
    model._symbolic_build(data_batch=next(iter(dataset_of(program, model, batch))))
    return model


def dataset_of(program: Any, model: Any, batch: int) -> Any:
    """The same batch again and again."""
    import tensorflow as tf

    inputs, targets = model_inputs(program, model), model_targets(program, model)
    x = [draw(array, batch, seed) for seed, array in enumerate(inputs)]
    y = [draw(array, batch, seed) for seed, array in enumerate(targets, start=len(inputs))]
    data = (x[0] if len(x) == 1 else tuple(x), y[0] if len(y) == 1 else tuple(y))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return (
        tf.data.Dataset.from_tensor_slices(data)
        .repeat()
        .batch(batch, drop_remainder=True)
        .with_options(options)
    )


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints must not come between the answers
    role, *arguments = json.loads(sys.argv[1])
    part: Any = {"trainer": Trainer, "server": Server, "coordinator": Coordinator}[role](*arguments)
    for answer in _answers(part):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    os._exit(0)  # a server has threads that never end


def _answers(part: Any) -> Any:
    yield "ready"
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        answer = getattr(part, command)(*arguments)
        gc.collect()
        yield answer


if __name__ == "__main__":
    main()
