"""Protobuf's text format: what it allows is read, what it does not is named with its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly.errors import SnuglyError, UnreadableProgramError
from snugly.training.detection.text_format import Message, Scalar, parse_text_format


def plain(value):
    """The tree as lists of pairs."""
    if isinstance(value, Scalar):
        return value.value
    return [(field.name, plain(field.value)) for field in value.fields]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", []),
        ("# only a comment", []),
        ("a: 1", [("a", 1)]),
        ("a: -1.5e3, b: .5; c: 2.f", [("a", -1500.0), ("b", 0.5), ("c", 2.0)]),
        ("a: 0x1F b: 017 c: 1f", [("a", 31), ("b", 15), ("c", 1.0)]),
        ("a: - 3", [("a", -3)]),
        (
            "a { b: 1 } a: { b: 2 } a < b: 3 > a: < b: 4 >",
            [("a", [("b", n)]) for n in (1, 2, 3, 4)],
        ),
        ("a: [1, 2] a: []", [("a", 1), ("a", 2)]),
        ("a: [{b: 1}, <b: 2>]", [("a", [("b", 1)]), ("a", [("b", 2)])]),
        ("a: 'it''s' b: \"q\\\"\\n\\x41\\101\\u00e9\"", [("a", "its"), ("b", 'q"\nAAé')]),
        ("a: RELU_6, b: true c: false", [("a", "RELU_6"), ("b", True), ("c", False)]),
        ("[x.y.Z] { a: 1 } [type.googleapis.com/x.Y] { }", None),
        ("a: '#not a comment' # one", [("a", "#not a comment")]),
        ("a: -inf", [("a", float("-inf"))]),
        ("\ufeffa: 1\r\nb: 2\r\n", [("a", 1), ("b", 2)]),
    ],
)
def test_what_the_format_allows_is_read(text, tree):
    found = plain(parse_text_format(text))
    if tree is None:
        tree = [("[x.y.Z]", [("a", 1)]), ("[type.googleapis.com/x.Y]", [])]
    assert found == tree


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a {\n b: 1\n", 1, "never closed"),
        ("a: 1\n}\n", 2, "'}'"),
        ("a: 1\nb: 'open\nc: 1", 2, "does not end"),
        ("a\n{ b 3 }", 2, "':' or '{'"),
        ("a:\n\n", 1, "no value"),
        ("a: 1\nb: [1 2]", 2, "',' or ']'"),
        ("a: [1,\n2", 1, "']' is missing|never closed"),
        ("a: 1\nb: 12abc", 2, "not a number"),
        ("a: 1\nb: 1.2.3", 2, "not a number"),
        ("a: 089", 1, "octal"),
        ("a: -yes", 1, "cannot stand"),
        ("a: 1\n\n$", 3, "does not belong"),
        ("a { b: 1 >", 1, "'>'"),
        ("a: '\\q'", 1, "no escape"),
        ("a: 'x' : 2", 1, "name"),
        ("a: 1\x00", 1, "binary"),
        ("a: {\n" * 200, 101, "nested"),
        ("a: 123456789012345678901234567890", 1, "64 bits"),
        ("a: '\\UFFFFFFFF'", 1, "no character"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text, line, what):
    with pytest.raises(UnreadableProgramError, match=what) as error:
        parse_text_format(text)
    assert error.value.code == "SNG550"
    assert str(error.value).startswith(f"line {line}:")


def test_values_keep_their_place_in_the_text():
    text = "train { batch_size: 24 # why\n}"
    message = parse_text_format(text).fields[0].value
    assert isinstance(message, Message)
    number = message.fields[0].value
    assert text[number.start : number.end] == "24"


@given(st.text(alphabet="ab1.'\"{}<>[]:,;#-\n \\xe+", max_size=60))
def test_no_text_does_more_than_raise_the_error(text):
    try:
        message = str(parse_text_format(text))
    except SnuglyError as error:
        message = str(error)
    assert message.startswith(("line ", "Message("))


def test_a_very_long_file_is_refused_before_it_is_read():
    with pytest.raises(UnreadableProgramError, match="more than any"):
        parse_text_format("a: 1\n" * 1_000_000)
