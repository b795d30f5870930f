"""The rules against TensorFlow: what each kernel of the survey really allocated, byte for byte.

The rules are for the version of TensorFlow that is installed: a few kernels were not always the
same, and `make compat` finds out which.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snugly.devices.software import detect_software
from snugly.readers.kernels import Behaviour, behaviour_of, is_known
from snugly.readers.node import Machine, Node, Value

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow"),
]

THREADS = 2
# oneDNN's scratch depends on the instruction set, and how many threads joined on the moment.
TOLERANCE, LEAST = 0.02, 1024


@pytest.fixture(scope="module", params=[True, False], ids=["oneDNN", "no oneDNN"])
def survey(request: pytest.FixtureRequest) -> tuple[Machine, list[dict[str, Any]]]:
    """The machine, and what the survey's programs allocated on it."""
    onednn: bool = request.param
    finished = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("survey_child.py"))],
        env={
            **os.environ,
            "TF_ENABLE_ONEDNN_OPTS": str(int(onednn)),
            "TF_NUM_INTRAOP_THREADS": str(THREADS),
        },
        capture_output=True,
        check=True,
        text=True,
        timeout=300,
    )
    software = detect_software(os.environ)
    assert software.tensorflow_version is not None
    machine = Machine(
        onednn=onednn,
        threads=THREADS,
        tensorflow=software.tensorflow_version,
        wide_vectors=software.wide_vectors,
        multiplies_bfloat16=software.multiplies_bfloat16,
    )
    return machine, json.loads(finished.stdout)


def test_every_kernel_allocates_what_its_rule_says(
    survey: tuple[Machine, list[dict[str, Any]]],
) -> None:
    # GIVEN programs that ran
    machine, cases = survey
    # WHEN each rule's bytes are put beside the real ones
    wrong = differences(cases, machine)
    # THEN none differ
    assert not wrong, "\n".join(wrong)
    assert sum(len(walk(case, machine)) for case in cases) > len(cases)


def test_the_rules_of_another_machine_do_not_fit(
    survey: tuple[Machine, list[dict[str, Any]]],
) -> None:
    # Proves that the test above can fail.
    machine, cases = survey
    assert differences(cases, replace(machine, onednn=not machine.onednn))


def test_what_runs_in_a_thread_of_its_own_is_called_expensive(
    survey: tuple[Machine, list[dict[str, Any]]],
) -> None:
    # Cheap kernels leave no trace of having run, so only one direction can be seen.
    machine, cases = survey
    ran = [node for case in cases for node in case["nodes"] if node["ran"]]
    cheap = {node["type"] for node in ran if not behaviour_of(as_node(node, machine)).expensive}
    assert not cheap
    assert ran


def test_every_kernel_of_the_survey_is_known(
    survey: tuple[Machine, list[dict[str, Any]]],
) -> None:
    _, cases = survey
    types = {node["type"] for case in cases for node in case["nodes"] if node["ran"]}
    assert {operator for operator in types if not is_known(operator)} == set()


def differences(cases: list[dict[str, Any]], machine: Machine) -> list[str]:
    wrong: list[str] = []
    for case in cases:
        for node, behaviour, predicted in walk(case, machine):
            real = node["bytes"]
            if abs(predicted - real) > max(LEAST, TOLERANCE * real):
                wrong.append(f"{case['case']}: {node['type']} {real} real, {predicted} {behaviour}")
    return wrong


def as_node(seen: dict[str, Any], machine: Machine) -> Node:
    def values(described: list[dict[str, Any]]) -> list[Value]:
        return [
            Value(
                dtype=one["dtype"],
                item_bytes=one["item_bytes"],
                shape=None if one["shape"] is None else tuple(one["shape"]),
            )
            for one in described
        ]

    return Node(
        seen["name"],
        seen["type"],
        values(seen["inputs"]),
        values(seen["outputs"]),
        seen["attributes"],
        machine,
        {int(position): np.array(value) for position, value in seen["constants"].items()},
    )


def walk(case: dict[str, Any], machine: Machine) -> list[tuple[dict[str, Any], Behaviour, int]]:
    """Every node that ran, with its rule and the bytes it should allocate, in program order."""
    nodes = [node for node in case["nodes"] if node["ran"] or is_passing(node, machine)]
    uses = Counter(value["source"] for node in nodes for value in node["inputs"])
    uses.update(case["returned"])
    buffers: dict[str, str] = {}
    holders: Counter[str] = Counter()
    walked = []
    for seen in case["nodes"]:
        names = [value["source"] for value in seen["outputs"]]
        if seen not in nodes:  # an argument, a constant, or folded into one: somebody holds it
            for name in names:
                buffers[name] = name
                holders[name] = sys.maxsize
            continue
        node = as_node(seen, machine)
        behaviour = behaviour_of(node)
        sources = [buffers[value["source"]] for value in seen["inputs"]]
        taken: set[str] = set()
        total = sum(behaviour.workspace) + sum(behaviour.extra)
        for position, name in enumerate(names):
            shared = behaviour.shares[position] if behaviour.shares else -1
            candidates = behaviour.takes[position] if behaviour.takes else ()
            free = [sources[i] for i in candidates if holders[sources[i]] == 1]
            if shared >= 0:
                buffers[name] = sources[shared]
            elif free and free[0] not in taken:
                buffers[name] = free[0]
                taken.add(free[0])
            else:
                buffers[name] = name
                if position not in behaviour.absent:
                    total += node.outputs[position].bytes
            holders[buffers[name]] += uses[name]
        holders.subtract(sources)
        if seen["ran"]:
            walked.append((seen, behaviour, total))
    return walked


def is_passing(seen: dict[str, Any], machine: Machine) -> bool:
    """A kernel that only hands its input on leaves no trace, but others hold its buffer then."""
    behaviour = behaviour_of(as_node(seen, machine))
    return bool(behaviour.shares) and not behaviour.expensive
