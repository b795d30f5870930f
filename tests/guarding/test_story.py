"""The story of an end, from figures and last words."""

import pytest

from snugly.findings import Finding
from snugly.guarding.outcome import Outcome
from snugly.guarding.policy import Limit
from snugly.guarding.story import tell
from snugly.units import Size

FINDING = Finding(code="SNG793", title="It crashed", cause="why", remedy="do", is_memory=False)


def outcome(**changes):
    facts = {
        "command": ("python", "train.py"),
        "own_code": 0,
        "limit": Limit(Size("1GiB"), "stated", "stated with --memory"),
        "peak": Size("900MiB"),
        "seconds": 2.0,
        "looks": 100,
    }
    return Outcome(**{**facts, **changes})


def test_a_good_end_has_no_story():
    assert tell(outcome()) is None


def test_a_good_end_with_children_left_is_told():
    story = tell(outcome(outliving=tuple((number, "sleep") for number in range(7))))
    assert "7 process(es) outlive the command" in story.notes[0]
    assert "2 more" in story.notes[0]


def test_being_stopped_is_certain_and_gives_75():
    stopped = outcome(own_code=143, stopped=True, peak=Size("1100MiB"))
    assert stopped.exit_code == 75
    story = tell(stopped)
    assert story.code == "SNG602"
    assert "1.1 GiB (measured), more than its limit of 1 GiB" in story.happened
    assert "exceeded by 76 MiB" in story.notes[0]
    assert "SIGKILL" in tell(outcome(stopped=True, killed=True)).happened


def test_being_refused_names_the_line():
    tail = b'Traceback (most recent call last):\n  File "a.py", line 3, in f\nMemoryError\n'
    refused = outcome(own_code=1, refused=True, tail=tail)
    assert refused.exit_code == 75
    assert (tell(refused).code, tell(refused).line) == ("SNG601", "a.py:3")


def test_sigkill_is_blamed_on_the_kernel_only_where_it_counted_one():
    assert tell(outcome(own_code=137, oom_kills=1)).code == "SNG724"
    assert "somebody sent it SIGKILL" in tell(outcome(own_code=137, oom_kills=0)).sure
    killed = Finding(code="SNG724", title="Killed", is_memory=True)
    story = tell(outcome(own_code=137, oom_kills=None, peak=Size(5)), [killed])
    assert "far from its limit" in story.notes[0]


def test_an_oom_kill_beside_another_end_is_noted():
    assert "OOM killer struck 2" in tell(outcome(own_code=1, oom_kills=2)).notes[0]


def test_a_finding_is_passed_on_with_its_certainty():
    story = tell(outcome(own_code=139, by_signal=True), [FINDING])
    assert story.code == "SNG793"
    assert "SIGSEGV" in story.happened
    assert "not memory" in story.sure
    assert story.hint == "do"


def test_what_is_unknown_is_said_to_be():
    story = tell(outcome(own_code=3, looks=2))
    assert story.code is None
    assert story.sure == "the cause is unknown"
    assert "(measured at 2 looks)" in story.happened


def test_a_signal_that_was_passed_on_needs_no_cause():
    story = tell(outcome(own_code=143, by_signal=True, passed_on=("SIGTERM",)), [FINDING])
    assert story.code is None
    assert "SIGTERM was passed on" in story.happened


@pytest.mark.parametrize(
    ("code", "by_signal", "name"),
    [(137, True, "SIGKILL"), (137, False, None), (3, False, None), (255, True, None)],
)
def test_signals_have_names(code, by_signal, name):
    assert outcome(own_code=code, by_signal=by_signal).signal_name == name


def test_a_convolution_that_crashed_under_a_limit_is_told_as_such():
    tail = b'Fatal Python error: x\n  File "/tensorflow/nn.py", line 1 in conv2d\n'
    assert tell(outcome(own_code=139, refusing=True, tail=tail), [FINDING]).code == "SNG901"
    assert tell(outcome(own_code=139, refusing=False, tail=tail), [FINDING]).code == "SNG793"


def test_the_report_is_plain_data():
    data = outcome(own_code=1, refused=True, samples=((0.1, 5),)).to_data()
    assert (data["exit_code"], data["command_exit_code"]) == (75, 1)
    assert data["samples"] == [{"seconds": 0.1, "held": 5}]
