"""All sets of logs stay explained, and memory is never blamed wrongly."""

from __future__ import annotations

import random

import pytest
from tests.accuracy.explaining import SETS, ask, read_logs
from tests.accuracy.explaining_clothes import FRAMES
from tests.accuracy.explaining_variants import ask as ask_variant
from tests.accuracy.explaining_variants import messages, variants
from tests.accuracy.raised_messages import raised, sources

from snugly.explaining.explain import explain

LOGS = [
    pytest.param(log, id=f"{name}-{log.name}")
    for name, path in SETS.items()
    for log in read_logs(path)
]


@pytest.mark.parametrize("log", LOGS)
def test_the_first_finding_is_right(log):
    answer = ask(log)

    assert answer.is_right, answer.said


def test_there_are_as_many_logs_and_kinds_as_the_figures_say():
    sets = [read_logs(path) for path in SETS.values()]

    sizes = [125, 67, 99, 114, 61, 53, 44, 50, 50, 50, 30, 61, 41, 25, 59, 88, 34, 30, 14]
    sizes += [159, 57, 129, 163, 101, 57, 74, 60, 76, 53, 59]
    assert [len(logs) for logs in sets] == sizes
    for logs in (sets[0], sets[2]):
        assert len({log.codes[0] for log in logs if log.codes}) >= 60
    of_strangers = [log for logs in sets[3:] for log in logs]
    assert len({log.codes[0] for log in of_strangers if log.codes}) >= 60
    for logs in sets:
        others = sum(not log.is_memory for log in logs)
        assert others >= 16 or others > len(logs) / 2


@pytest.mark.skipif(not sources(), reason="needs Keras or TensorFlow")
def test_nothing_that_keras_or_tensorflow_raises_from_python_is_taken_for_memory():
    # Every twelfth file; `python -m tests.accuracy.raised_messages` reads all of them.
    lines = list(raised(sources()[::12]))
    blamed = [line for line in lines if any(one.is_memory for one in explain(line.encode())[:1])]

    assert len(lines) > 100
    assert not blamed


def test_messages_in_other_clothes_are_explained_alike():
    # Every twentieth message; `python -m tests.accuracy.explaining_variants` takes all of them.
    dice = random.Random(20)  # noqa: S311 - no secret
    answers = [ask_variant(one) for one in variants(messages()[::20], dice, list(FRAMES))]
    wrong = [one for one in answers if not one.is_right]

    assert len(answers) > 500
    assert not [one.variant.log for one in answers if one.is_false_alarm]
    # A notice of no weight may be drowned by the noise that is cast beside it.
    assert len(wrong) <= len(answers) / 200, [(one.variant.frame, one.code) for one in wrong]
