"""The console: colours only where they are wanted."""

from rich.text import Text

from snugly.reporting.terminal import make_console, make_facts, show


def rendered(monkeypatch, **variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    console = make_console()
    with console.capture() as capture:
        console.print(Text("red", style="bold red"))
    return capture.get()


def test_a_pipe_gets_no_colours(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert rendered(monkeypatch) == "red\n"


def test_colours_can_be_forced_so_that_the_test_above_can_fail(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in rendered(monkeypatch, FORCE_COLOR="1", TERM="xterm-256color")


def test_no_color_is_honoured(monkeypatch):
    text = rendered(monkeypatch, FORCE_COLOR="1", NO_COLOR="1", TERM="xterm-256color")
    assert "\x1b[31m" not in text
    assert "31" not in text


def test_lines_in_a_pipe_end_where_their_text_ends(capsys):
    show(make_facts([("name", "short"), ("other", "long " * 60)]))
    assert all(line == line.rstrip() for line in capsys.readouterr().out.splitlines())
