"""Run the survey's programs under the profiler and print, as JSON, what each node allocated.

Started in a fresh process by `test_against_tensorflow.py`: the allocator and oneDNN are chosen when
TensorFlow is first imported.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf
from survey_cases import CASES, Case, Spec

from snugly.readers.signatures import Attributes

SMALL = 64  # constants of up to so many elements are told


def operand(spec: Spec, random: np.random.Generator) -> tf.Tensor:
    shape, dtype, limit = spec
    if dtype == "bool":
        return tf.constant(random.random(shape) < 0.5)
    if limit:
        return tf.constant(random.integers(0, limit, shape), dtype)
    return tf.cast(tf.constant(random.uniform(0.1, 0.9, shape)), dtype)


def fresh(value: tf.Tensor) -> tf.Tensor:
    """The same values in a buffer that the program made itself."""
    if value.dtype == tf.bool:
        return tf.logical_not(value)
    return value * tf.ones((), value.dtype)


def program(case: Case, scope: str) -> Any:
    def run(*operands: tf.Tensor) -> Any:
        with tf.name_scope(scope):
            made = [x if i in case.given else fresh(x) for i, x in enumerate(operands)]
            return case.function(*made)

    return tf.function(run, autograph=False)


def describe(tensor: Any) -> dict[str, Any]:
    handle = tensor.dtype in (tf.resource, tf.variant, tf.string)
    shape = tensor.shape.as_list() if tensor.shape.is_fully_defined() else None
    return {
        "source": tensor.name,
        "dtype": tensor.dtype.base_dtype.name,
        "shape": shape,
        "item_bytes": 0 if handle else tensor.dtype.base_dtype.size,
    }


def constants(operation: Any) -> dict[int, Any]:
    known = {}
    for position, tensor in enumerate(operation.inputs):
        value = tf.get_static_value(tensor) if tensor.dtype.is_integer else None
        if value is not None and value.size <= SMALL:
            known[position] = value.tolist()
    return known


def attributes(operation: Any) -> dict[str, Any]:
    every = Attributes(operation.node_def.attr)
    plain = (int, float, str, list, tuple)
    return {name: every[name] for name in every if isinstance(every[name], plain)}


def allocations(folder: Path) -> tuple[dict[str, int], set[str]]:
    """Per operation, the most bytes of its own allocations alive at once; and all that ran."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    space.ParseFromString(next(folder.rglob("*.xplane.pb")).read_bytes())
    plane = next(plane for plane in space.planes if plane.name == "/host:CPU")
    events: list[tuple[int, bool, dict[str, Any]]] = []
    ran: set[str] = set()
    for line in plane.lines:
        for event in line.events:
            metadata = plane.event_metadata[event.metadata_id]
            if metadata.name in {"MemoryAllocation", "MemoryDeallocation"}:
                facts = {}
                for stat in event.stats:
                    kind = stat.WhichOneof("value")
                    value = getattr(stat, kind)
                    if kind == "ref_value":
                        value = plane.stat_metadata[value].name
                    facts[plane.stat_metadata[stat.metadata_id].name] = value
                moment = line.timestamp_ns * 1000 + event.offset_ps
                events.append((moment, metadata.name == "MemoryAllocation", facts))
            elif metadata.display_name:
                ran.add(metadata.name.removesuffix(f":{metadata.display_name}"))
    live: dict[str, int] = {}
    most: dict[str, int] = {}
    owner: dict[int, tuple[str, int]] = {}
    for _, birth, facts in sorted(events, key=lambda event: event[0]):
        if birth:
            name, size = str(facts.get("tf_op", "")), int(facts["requested_bytes"])
            owner[facts["addr"]] = (name, size)
            live[name] = live.get(name, 0) + size
            most[name] = max(most.get(name, 0), live[name])
        elif facts["addr"] in owner:
            name, size = owner.pop(facts["addr"])
            live[name] -= size
    return most, ran


def main() -> None:
    # What is written is what runs: Grappler would fold and fuse some of it.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    random = np.random.default_rng(0)
    prepared = []
    for number, case in enumerate(CASES):
        operands = [operand(spec, random) for spec in case.inputs]
        function = program(case, f"case{number}").get_concrete_function(*operands)
        function(*operands)
        prepared.append((case, function, operands))
    with tempfile.TemporaryDirectory() as folder:
        options = tf.profiler.experimental.ProfilerOptions(python_tracer_level=0)
        tf.profiler.experimental.start(folder, options)
        for _, function, operands in prepared:
            function(*operands)
        tf.profiler.experimental.stop()
        most, ran = allocations(Path(folder))
    report = [
        {
            "case": case.name,
            "returned": [tensor.name for tensor in function.graph.outputs],
            "nodes": [
                {
                    "name": operation.name,
                    "type": operation.type,
                    "inputs": [describe(tensor) for tensor in operation.inputs],
                    "outputs": [describe(tensor) for tensor in operation.outputs],
                    "attributes": attributes(operation),
                    "constants": constants(operation),
                    "ran": operation.name in ran,
                    "bytes": most.get(operation.name, 0),
                }
                for operation in function.graph.get_operations()
            ],
        }
        for case, function, _ in prepared
    ]
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
