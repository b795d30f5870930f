"""The bar: on standard error, with its share, whatever the title contains, and gone when closed."""

import io

import pytest
from rich.console import Console

from snugly.reporting import progress
from snugly.reporting.progress import Bar


@pytest.fixture
def screen(monkeypatch):
    """What a terminal of 100 columns gets to see."""
    text = io.StringIO()

    def console(*, stderr):
        assert stderr
        return Console(file=text, force_terminal=True, width=100, color_system=None)

    monkeypatch.setattr(progress, "Console", console)
    return text


def test_title_and_share_are_shown_and_the_bar_is_gone_when_closed(screen):
    bar = Bar("determinant of a.npy")
    bar.advance(0.42)
    bar.close()
    seen = screen.getvalue()
    assert "determinant of a.npy" in seen
    assert "42%" in seen
    assert seen.rstrip().endswith("\x1b[2K")  # the line is erased


def test_a_title_is_never_taken_for_markup(screen):
    bar = Bar("determinant of [red]a[/].npy")
    bar.close()
    assert "[red]a[/].npy" in screen.getvalue()


def test_control_characters_in_a_title_do_not_reach_the_terminal(screen):
    bar = Bar("determinant of \x1b]0;owned\x07.npy")
    bar.close()
    assert "\x1b]0;owned" not in screen.getvalue()


def test_closing_twice_is_harmless(screen):
    bar = Bar("work")
    bar.close()
    bar.close()
    assert "work" in screen.getvalue()
