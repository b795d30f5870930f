"""The three sets of logs stay explained, and memory is never blamed wrongly."""

from __future__ import annotations

import pytest
from tests.accuracy.explaining import SETS, ask, read_logs

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
    first, second, third = (read_logs(path) for path in SETS.values())

    assert (len(first), len(second), len(third)) == (125, 67, 99)
    for logs in (first, third):
        assert len({log.codes[0] for log in logs if log.codes}) >= 60
        assert sum(not log.is_memory for log in logs) >= 16
