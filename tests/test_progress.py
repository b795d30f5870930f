"""Progress: quiet unless somebody waits at a terminal, or brings a function of their own."""

import sys

import pytest

from snugly import progress
from snugly.progress import shown


class Terminal:
    """Standard error as a person at a terminal has it."""

    def isatty(self):
        return True


class Recorder:
    """Stands where the bar is drawn, and notes what it is told."""

    made = ()

    def __init__(self, title):
        self.title, self.shares, self.closed = title, [], False
        Recorder.made = (*Recorder.made, self)

    def advance(self, share):
        self.shares.append(share)

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.setattr(Recorder, "made", ())
    monkeypatch.setattr("snugly.reporting.progress.Bar", Recorder)
    return lambda: Recorder.made


@pytest.fixture
def wait_at_a_terminal(monkeypatch):
    """To be called in the test itself: pytest changes standard error after fixtures are made."""

    def wait(patience=-1.0):
        monkeypatch.setattr(progress, "_PATIENCE", patience)
        monkeypatch.setattr(sys, "stderr", Terminal())

    return wait


def test_the_callers_own_function_is_told_and_nothing_is_drawn(bars, wait_at_a_terminal):
    wait_at_a_terminal()
    shares = []
    with shown("work", shares.append) as report:
        report(0.5)
        report(1.0)
    assert shares == [0.5, 1.0]
    assert bars() == ()


def test_without_a_terminal_it_stays_quiet(bars, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", -1)
    with shown("work") as report:
        report(0.5)
    assert bars() == ()
    assert capsys.readouterr() == ("", "")


def test_short_work_shows_nothing(bars, wait_at_a_terminal):
    wait_at_a_terminal(3600.0)
    with shown("work") as report:
        report(0.1)
        report(1.0)
    assert bars() == ()


def test_long_work_shows_a_bar_and_takes_it_away(bars, wait_at_a_terminal):
    wait_at_a_terminal()
    with shown("work of mine") as report:
        report(0.1)
        report(0.7)
    (bar,) = bars()
    assert (bar.title, bar.shares, bar.closed) == ("work of mine", [0.1, 0.7], True)


def test_work_that_is_done_shows_no_bar_any_more(bars, wait_at_a_terminal):
    wait_at_a_terminal()
    with shown("work") as report:
        report(1.0)
    assert bars() == ()


def test_the_bar_goes_away_on_an_interruption_too(bars, wait_at_a_terminal):
    wait_at_a_terminal()

    def work():
        with shown("work") as report:
            report(0.1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert bars()[0].closed
