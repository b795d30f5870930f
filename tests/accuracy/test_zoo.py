"""The zoo as a list; its programs are built and run by `make accuracy`."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.accuracy.zoo import FIRST, HELD_OUT, REGISTRY, Array, find, select
from tests.accuracy.zoo.program import draw


def test_importing_the_zoo_loads_no_tensorflow() -> None:
    # GIVEN a fresh process
    code = (
        "import sys, tests.accuracy.zoo; sys.exit(bool({'tensorflow', 'keras'} & {*sys.modules}))"
    )

    # WHEN it imports the zoo, THEN the allocator can still be chosen
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_held_out_programs_appear_only_when_asked_for() -> None:
    # GIVEN the three ways to choose
    tuning, quick, held_out = select(), select(quick=True), select(held_out=True)

    # THEN tuning never sees a held-out program, and both sides are large enough to mean something
    assert all(HELD_OUT not in program.tags for program in [*tuning, *quick])
    assert all(HELD_OUT in program.tags for program in held_out)
    assert len(held_out) >= 12
    assert all(FIRST in program.tags for program in quick)
    assert len(tuning) + len(held_out) == len(REGISTRY)


def test_the_programs_that_the_goals_name_are_there() -> None:
    names = {program.name for program in select(quick=True)}
    for name in ("vgg16-64", "resnet50-128", "mobilenet_v2-96", "lstm", "transformer"):
        assert {name, f"{name}-sgd"} <= names


def test_every_program_has_three_rising_batch_sizes() -> None:
    for program in REGISTRY.values():
        assert len(program.batches) == 3
        assert tuple(sorted(set(program.batches))) == program.batches


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(SystemExit, match=r"hint: one of .*resnet50-128"):
        find("resnet50")


def test_drawn_arrays_have_the_asked_shape_and_stay_in_bounds() -> None:
    # GIVEN token ids below 7
    tokens = Array((None, 5), "int32", 7)

    # WHEN they are drawn twice from one seed
    first, second = draw(tokens, 3, seed=0), draw(tokens, 3, seed=0)

    # THEN they are the same, of the batch's shape, and inside the vocabulary
    assert first.shape == (3, 5)
    assert first.dtype == "int32"
    assert 0 <= first.min() <= first.max() < 7
    assert (first == second).all()
