"""A training step as one replica of several runs it: with the exchange of gradients inside.

Keras reduces gradients through the replica context of `tf.distribute`. Outside any strategy that
does nothing; while `as_one_of` is entered it traces what `CollectiveAllReduce` would trace for one
device (cross_device_ops.py, cross_device_utils.py): gradients end to end in packs, one collective
a pack, then cut apart again. No cluster is needed, and nothing is run.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError
from snugly.readers.start import load_tensorflow

if TYPE_CHECKING:
    from collections.abc import Iterator

ON_SERVER = "on_its_server"
"""The scope of what is computed where a variable is, for whoever cuts the graph in two."""
GROUP_KEY, INSTANCE_KEY = 1, 1  # names of the exchange; the values say nothing about memory


@dataclass(frozen=True, slots=True)
class Exchange:
    """How replicas exchange gradients."""

    replicas: int
    # Gradients are put together until a pack is larger than this; 0 for one pack of all of them.
    bytes_per_pack: int = 0
    # What carries them: "ring" or "nccl".
    communication: str = "ring"


def without_strategy(program: Any) -> Any:
    """The same model as if it had been built outside its strategy's scope.

    Variables that are spread already belong to one strategy and cannot be traced outside it. The
    copy's weights take memory, once, until the prediction is made.
    """
    tf = load_tensorflow()
    if tf.distribute.has_strategy():
        raise InputError(
            "inside a strategy's scope everything belongs to that strategy",
            code="SNG109",
            hint="call snugly.predict after the `with strategy.scope():` block",
        )
    if getattr(program, "_distribute_strategy", None) is None:
        return program
    try:
        rebuilt = type(program).from_config(program.get_config())
        rebuilt.compile_from_config(program.get_compile_config())
    except Exception as problem:
        raise InputError(
            f"{program.name!r} was built inside a strategy's scope and cannot be built again from"
            f" its configuration: {problem}",
            code="SNG109",
            hint="give snugly.predict a model that was built and compiled outside strategy.scope()",
        ) from problem
    return rebuilt


def order_of_creation(program: Any) -> tuple[str, ...] | None:
    """The names of a built model's variables as they were made; None where that is not known.

    TensorFlow numbers variables as it makes them, but for those in graphs.
    """
    variables = [*getattr(program, "variables", ())]
    variables += getattr(getattr(program, "optimizer", None), "variables", ())
    numbers: dict[str, int] = {}
    for variable in variables:
        number = str(getattr(variable.value, "_unique_id", "")).rpartition("_")[2]
        if not number.isdecimal():
            return None
        numbers[variable.path] = int(number)
    if not numbers or len(numbers) < len(variables):
        return None  # not built yet, or two of one name
    return tuple(sorted(numbers, key=numbers.__getitem__))


@contextmanager
def marking_servers() -> Iterator[None]:
    """While inside, what updates a variable is traced in a scope of its own.

    `ParameterServerStrategy` runs all of it on the variable's server (`_update`,
    parameter_server_strategy.py).
    """
    tf = load_tensorflow()
    from tensorflow.python.distribute import distribute_lib

    alone: Any = distribute_lib._DefaultDistributionExtended  # noqa: SLF001
    before = alone._update  # noqa: SLF001

    def update(self: Any, *arguments: Any, **named: Any) -> Any:
        with tf.name_scope(ON_SERVER):
            return before(self, *arguments, **named)

    alone._update = update  # noqa: SLF001
    try:
        yield
    finally:
        alone._update = before  # noqa: SLF001


@contextmanager
def as_one_of(exchange: Exchange) -> Iterator[None]:
    """While inside, what reduces over replicas is traced as by one of them."""
    load_tensorflow()
    from tensorflow.python.distribute import distribute_lib

    # There is no public place to stand in.
    alone: Any = distribute_lib._DefaultDistributionExtended  # noqa: SLF001

    def reduced(_self: Any, _operation: Any, pairs: Any, _options: Any) -> list[Any]:
        return _all_reduce([value for value, _ in pairs], exchange)

    replaced = "_batch_reduce_to" in vars(alone)
    before = alone._batch_reduce_to  # noqa: SLF001
    alone._batch_reduce_to = reduced  # noqa: SLF001
    try:
        yield
    finally:
        if replaced:
            alone._batch_reduce_to = before  # noqa: SLF001
        else:
            del alone._batch_reduce_to  # noqa: SLF001


def _all_reduce(values: list[Any], exchange: Exchange) -> list[Any]:
    """As `CollectiveAllReduce._all_reduce` does it: dense values in packs, the last made first."""
    import tensorflow as tf

    dense = [index for index, value in enumerate(values) if not _is_sparse(value)]
    results: dict[int, Any] = {}
    for pack in _packs([(index, values[index]) for index in reversed(dense)], exchange):
        flat = [tf.reshape(value, [-1]) for _, value in pack]
        together = _reduce(tf.concat(flat, axis=0), exchange)
        parts = tf.split(together, [value.shape.num_elements() for _, value in pack], axis=0)
        for (index, value), part in zip(pack, parts, strict=True):
            results[index] = tf.reshape(part, value.shape)
    return [
        _gather_slices(value, exchange) if _is_sparse(value) else results[index]
        for index, value in enumerate(values)
    ]


def _is_sparse(value: Any) -> bool:
    import tensorflow as tf

    return isinstance(value, tf.IndexedSlices)


def _packs(values: list[tuple[int, Any]], exchange: Exchange) -> list[list[tuple[int, Any]]]:
    """As cross_device_utils.group_by_size: a pack is closed once it is larger than asked for."""
    packs: list[list[tuple[int, Any]]] = []
    size = 0
    for entry in values:
        if not packs or (exchange.bytes_per_pack and size > exchange.bytes_per_pack):
            packs.append([])
            size = 0
        packs[-1].append(entry)
        size += entry[1].shape.num_elements() * entry[1].dtype.size
    return packs


def _reduce(value: Any, exchange: Exchange) -> Any:
    import tensorflow as tf

    return tf.raw_ops.CollectiveReduceV2(
        input=value,
        group_size=exchange.replicas,
        group_key=GROUP_KEY,
        instance_key=INSTANCE_KEY,
        ordering_token=[],
        merge_op="Add",
        final_op="Id",
        communication_hint=exchange.communication,
    )


def _gather_slices(slices: Any, exchange: Exchange) -> Any:
    """The rows of all replicas, one after the other (all_reduce_indexed_slices).

    A concatenation stands in for the collective, whose output is as large but of unknown shape.
    """
    import tensorflow as tf

    return tf.IndexedSlices(
        values=tf.concat([slices.values] * exchange.replicas, axis=0),
        indices=tf.concat([slices.indices] * exchange.replicas, axis=0),
        dense_shape=slices.dense_shape,
    )
