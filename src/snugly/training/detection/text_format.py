"""Protobuf's text format, read into a plain tree without knowing the messages.

What the format allows is accepted: `name { … }`, `name: { … }`, `name < … >`, lists in brackets,
comments, strings of both quotes that follow one another, `,` and `;` between fields, extension
names in brackets. Every value keeps its line and its place in the text, so that one number can be
changed and the rest of the file stays as its author wrote it.

https://protobuf.dev/reference/protobuf/textformat-spec is followed; what needs the message's
definition (is this field repeated, is this a known enum value) is left to who reads the tree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from snugly.errors import UnreadableProgramError

LONGEST_FILE: Final = 4 * 2**20
"""Characters. The largest configuration of the model zoo has 20 thousand."""

DEEPEST: Final = 100
"""Levels of nesting, as in protobuf's own parsers (kDefaultRecursionLimit, message.h)."""

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n\f\v\ufeff]+|\#[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
    |(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)(?![\w.]))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<mark>[{}<>\[\]:,;.\-/])""",
    re.VERBOSE,
)

_ESCAPES: Final = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, a string, a truth value or the name of an enum's value, and where it stands."""

    value: int | float | str | bool
    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Field:
    """One `name: value` or `name { … }`."""

    name: str
    value: Value
    line: int


@dataclass(frozen=True, slots=True)
class Message:
    """What stands between braces, in order; `start` is just after the opening brace."""

    fields: tuple[Field, ...]
    line: int
    start: int
    end: int

    def all(self, name: str) -> tuple[Value, ...]:
        """Every value of a repeated field."""
        return tuple(field.value for field in self.fields if field.name == name)

    def names(self) -> tuple[str, ...]:
        """The names of the fields, each once, in order."""
        return tuple(dict.fromkeys(field.name for field in self.fields))


Value: TypeAlias = Scalar | Message


def broken(line: int, what: str, *, hint: str | None = None) -> UnreadableProgramError:
    """The error for a file that cannot be read, with the line where it went wrong."""
    return UnreadableProgramError(f"line {line}: {what}", code="SNG550", hint=hint)


def parse_text_format(text: str) -> Message:
    """Read protobuf text into a tree of messages, fields and values.

    Raises:
        UnreadableProgramError: The text is not protobuf text; the line is named.
    """
    if len(text) > LONGEST_FILE:
        raise broken(1, f"the file has {len(text)} characters, more than any configuration has")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise broken(line, "this is a binary file, not protobuf text")
    return _Parser(text).parse()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    place, line = 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise broken(line, _strange(text, place))
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(_Token(kind, match[0], line, place))
        line += match[0].count("\n")
        place = match.end()
    return found


def _strange(text: str, place: int) -> str:
    rest = text[place : place + 20].split("\n", 1)[0]
    if text[place] in "\"'":
        return f"the string that begins with {rest!r} does not end on its line"
    if text[place].isdigit() or text[place] == ".":
        return f"{rest!r} is not a number"
    return f"{text[place]!r} does not belong here"


class _Parser:
    """One pass over the tokens; the only state is where it stands."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.length = len(text)
        self.last_line = text.count("\n") + 1
        self.place = 0

    def parse(self) -> Message:
        fields = self.fields(None, 0)
        return Message(fields, 1, 0, self.length)

    def peek(self) -> _Token | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def take(self, wanted: str) -> _Token:
        token = self.peek()
        if token is None:
            raise broken(self.last_line, f"the file ends where {wanted} should follow")
        self.place += 1
        return token

    def skip(self, *marks: str) -> bool:
        token = self.peek()
        if token is not None and token.kind == "mark" and token.text in marks:
            self.place += 1
            return True
        return False

    def fields(self, opening: _Token | None, depth: int) -> tuple[Field, ...]:
        """Fields up to the closing brace, or to the end of the file; the brace is left standing."""
        if depth > DEEPEST:
            line = opening.line if opening else 1
            raise broken(line, f"messages are nested more than {DEEPEST} deep")
        closing = None if opening is None else {"{": "}", "<": ">"}[opening.text]
        found: list[Field] = []
        while (token := self.peek()) is not None:
            if token.text == closing and token.kind == "mark":
                return tuple(found)
            found += self.field(depth)
            self.skip(",", ";")
        if opening is not None:
            raise broken(
                opening.line,
                f"the {opening.text!r} that opens here is never closed",
                hint=f"write the missing {closing!r}; the file ends at line {self.last_line}",
            )
        return tuple(found)

    def field(self, depth: int) -> list[Field]:
        first = self.take("a field")
        name = self.name(first)
        colon = self.skip(":")
        token = self.peek()
        if token is None:
            raise broken(first.line, f"{name} has no value")
        if token.kind == "mark" and token.text in "{<":
            values: list[Value] = [self.message(depth)]
        elif not colon:
            raise broken(first.line, f"a ':' or '{{' is missing after {name}")
        elif token.kind == "mark" and token.text == "[":
            values = self.list(depth)
        else:
            values = [self.scalar(name)]
        return [Field(name, value, first.line) for value in values]

    def name(self, first: _Token) -> str:
        if first.kind == "name":
            return first.text
        if first.text != "[" or first.kind != "mark":
            raise broken(first.line, f"a field's name should stand where {first.text[:20]!r} does")
        parts: list[str] = []
        while True:
            token = self.take("']'")
            if token.kind == "mark" and token.text == "]":
                break
            if token.kind == "string" or token.text in "{}<>:;,[":
                raise broken(token.line, f"{token.text[:20]!r} cannot be part of an extension name")
            parts.append(token.text)
        return f"[{''.join(parts)}]"

    def message(self, depth: int) -> Message:
        opening = self.take("'{'")
        fields = self.fields(opening, depth + 1)
        closing = self.take("'}'")
        return Message(fields, opening.line, opening.end, closing.start)

    def list(self, depth: int) -> list[Value]:
        opening = self.take("'['")
        values: list[Value] = []
        if self.skip("]"):
            return values
        while True:
            token = self.peek()
            if token is None:
                raise broken(opening.line, "the '[' that opens here is never closed")
            is_message = token.kind == "mark" and token.text in "{<"
            values.append(self.message(depth) if is_message else self.scalar("the list"))
            if self.skip("]"):
                return values
            if not self.skip(","):
                line = (self.peek() or opening).line
                raise broken(line, "a ',' or ']' is missing in the list")

    def scalar(self, name: str) -> Scalar:
        first = self.take(f"the value of {name}")
        token, sign = first, 1
        if first.kind == "mark" and first.text == "-":
            token, sign = self.take("a number"), -1
        if token.kind == "number":
            return Scalar(sign * _number(token), first.line, first.start, token.end)
        if token.kind == "name" and sign < 0:
            if token.text.lower() in {"inf", "infinity", "nan"}:
                return Scalar(-float(token.text), first.line, first.start, token.end)
            raise broken(token.line, f"'-' cannot stand before {token.text!r}")
        if token.kind == "name":
            return Scalar(_word(token.text), first.line, first.start, token.end)
        if token.kind == "string" and sign > 0:
            return self.string(token)
        raise broken(token.line, f"{token.text[:20]!r} is not a value for {name}")

    def string(self, first: _Token) -> Scalar:
        parts, end = [_unescaped(first)], first.end
        while (token := self.peek()) is not None and token.kind == "string":
            self.place += 1
            parts.append(_unescaped(token))
            end = token.end
        return Scalar("".join(parts), first.line, first.start, end)


def _word(text: str) -> str | bool:
    # "t" and "f" are truth values to protobuf as well, but they are also enum names.
    return {"true": True, "True": True, "false": False, "False": False}.get(text, text)


def _number(token: _Token) -> int | float:
    text = token.text
    if text[:2].lower() == "0x":
        return int(text, 16)
    if text.isdecimal():
        if len(text) > 1 and text[0] == "0":
            if not set(text) <= set("01234567"):
                raise broken(token.line, f"{text[:20]!r} is not an octal number")
            return int(text, 8)
        if len(text) > 20:  # noqa: PLR2004 - 2**64 has 20 digits
            raise broken(token.line, f"the number {text[:20]}… has more than 64 bits")
        return int(text)
    return float(text.rstrip("fF"))


_ESCAPE: Final = re.compile(
    r"\\(?:([xX][0-9a-fA-F]{1,2})|([0-7]{1,3})|(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|(.))"
)


def _unescaped(token: _Token) -> str:
    def plain(match: re.Match[str]) -> str:
        hexadecimal, octal, code, letter = match.groups()
        if hexadecimal:
            return chr(int(hexadecimal[1:], 16))
        if octal:
            return chr(int(octal, 8))
        if code:
            number = int(code[1:], 16)
            if number > 0x10FFFF:  # noqa: PLR2004 - the last code point of Unicode
                raise broken(token.line, f"\\{code} is no character")
            return chr(number)
        if letter in "\\'\"?":
            return letter
        if letter not in _ESCAPES:
            raise broken(token.line, f"\\{letter} is no escape that strings have")
        return _ESCAPES[letter]

    return _ESCAPE.sub(plain, token.text[1:-1])
