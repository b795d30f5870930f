"""Patches together with the plan that follows: ranked by what both reach."""

from itertools import pairwise

import pytest
from tests.lite import micro_models as micro

from snugly import lite as smaller
from snugly.lite.patches import patched
from snugly.readers.tflite import read_tflite


def mobile(kind="INT8", size=24):
    """Expand, depthwise, project: what patches are for."""
    model = micro.Model(1)
    given = model.tensor((1, size, size, 3), kind)
    values = model.convolution(given, 8, 3, kind)
    for count, stride in ((24, 2), (16, 2)):
        values = model.convolution(values, count, 1, kind)
        values = model.depthwise(values, 1, 3, kind, stride=stride)
        values = model.convolution(values, 8, 1, kind)
    return model.finish((given,), (values,))


def planned_arena(source, kernels="reference"):
    """What the model needs with an offline plan and its operators in the best order."""
    return int(smaller.shrink(source, kernels=kernels).after.arena)


@pytest.mark.parametrize("planned", ["overlapping", "packed"])
def test_what_is_promised_is_what_the_plan_gives(planned):
    # GIVEN a model WHEN patches are ranked by the plan that follows
    source = mobile()
    kernels = "reference" if planned == "overlapping" else "any"
    result = patched(source, planned=planned)
    # THEN the file, which has no plan yet, needs no more than was told once it has one
    assert result.patches
    assert read_tflite(result.data).offline_offsets is None
    after = planned_arena(result.data, kernels)
    assert after <= result.after.arena < result.before.arena
    # AND no more than what would have been chosen without a look at plans
    assert after <= planned_arena(patched(source).data, kernels)


def test_of_what_fits_the_least_work_is_taken():
    # GIVEN budgets between the smallest that patches reach and the plan alone
    source = mobile()
    planned = int(smaller.shrink(source).after.arena)
    smallest = int(smaller.shrink(source, 1).after.arena)
    assert smallest < planned
    extra = []
    for share in (0, 1, 2):
        budget = smallest + (planned - 1 - smallest) * share // 2
        result = patched(source, budget, planned="overlapping")
        assert planned_arena(result.data) <= budget
        extra.append(result.extra_work)
    # THEN more room means no more work
    assert extra == sorted(extra, reverse=True)
    assert extra[-1] < extra[0]


@pytest.mark.parametrize("budget", [None, 1, 8_000])
def test_more_effort_never_gives_less_and_the_same_effort_the_same(budget):
    # GIVEN a model, and more and more ways to patch it that are planned
    source = mobile(size=16)
    results = [patched(source, budget, planned="overlapping", effort=n) for n in (1, 2, 4, 8)]
    # THEN none is worse than the one before: it fits where that did, else it needs no more
    for less, more in pairwise(results):
        if budget is not None and less.after.arena <= budget:
            assert more.after.arena <= budget
            assert more.extra_work <= less.extra_work
        else:
            assert more.after.arena <= less.after.arena
    # AND no clock has a say
    assert patched(source, budget, planned="overlapping", effort=2) == results[1]


def test_the_extra_work_is_told_and_the_answers_stay():
    source = mobile()
    budget = int(smaller.shrink(source).after.arena) * 9 // 10
    shrunk = smaller.shrink(source, budget)
    assert shrunk.fits
    step = next(step for step in shrunk.steps if step.name == "patches")
    assert "% more multiply-accumulates" in step.note
    # The model had no plan: that patches drop the one that was tried first is nobody's business.
    assert "is dropped" not in step.note
    assert micro.run(shrunk.data, 20, arena=int(shrunk.after.arena)) == micro.run(source, 20)
