"""Lines as they were before terminals, loggers and test runners dressed them up."""

import pytest

from snugly.explaining.lines import core_of, exception_on, printable, without_colours


@pytest.mark.parametrize(
    "dressed",
    [
        "MemoryError: x",
        "2024-05-01T12:00:00.1234567Z MemoryError: x",
        "2024-05-01 12:00:00,123 MemoryError: x",
        "trainer-1  | MemoryError: x",
        "May 04 12:01:00 host python[12]: MemoryError: x",
        "[ 4711.123456] MemoryError: x",
        "[stderr] MemoryError: x",
        "3: MemoryError: x",
        "(train pid=123) MemoryError: x",
        "E   MemoryError: x",
        "ERROR:root:MemoryError: x",
        "##[error]MemoryError: x",
        "2024-05-01T12:00:00Z app-1  | MemoryError: x",
    ],
)
def test_what_a_logger_put_before_a_line_is_taken_off(dressed):
    assert core_of(dressed) == "MemoryError: x"


def test_colours_are_taken_off_also_where_json_has_escaped_them():
    assert without_colours("\x1b[0;31mValueError\x1b[0m: bad") == "ValueError: bad"
    assert without_colours(r"\u001b[0;31mValueError\u001b[0m: bad") == "ValueError: bad"
    assert without_colours("plain") == "plain"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ValueError: bad", ("ValueError", "bad")),
        ("MemoryError", ("MemoryError", "")),
        ("tensorflow.python.framework.errors_impl.InternalError: x", ("InternalError", "x")),
        ("KeyboardInterrupt", ("KeyboardInterrupt", "")),
        (
            'Exception in thread "main" java.lang.OutOfMemoryError: Java',
            ("OutOfMemoryError", "Java"),
        ),
        ("an Error in a sentence", None),
        ("except ValueError: pass", None),
        ("Epoch 1/10", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_an_exception_is_recognised_by_its_place(line, found):
    assert exception_on(line) == found


def test_what_is_shown_has_no_control_characters_and_is_not_too_long():
    assert printable("a\x1b]0;title\x07b\tc") == "a�]0;title�b�c"
    assert len(printable("x" * 10_000)) <= 300
    assert printable("  kept  ") == "kept"
