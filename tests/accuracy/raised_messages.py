# ruff: noqa: T201 - a command of its own, which prints
"""Whether explain takes a message that Keras or TensorFlow raises from Python for memory.

    python -m tests.accuracy.raised_messages

The messages are read out of the sources that are installed; what a program would put into them is
a number. None of them is about memory: TensorFlow says that from native code.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from snugly.explaining.explain import explain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHORTEST = 15
"""Characters; shorter ones say nothing by themselves."""


def sources() -> list[Path]:
    """The Python files of Keras and of TensorFlow, where they are installed."""
    found: list[Path] = []
    for package, inner in (("keras", "src"), ("tensorflow", "python")):
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            found += sorted((Path(spec.origin).parent / inner).rglob("*.py"))
    return found


def raised(files: Iterable[Path]) -> Iterator[str]:
    """What is raised in these files, as a traceback's last line; each message once."""
    told: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
                continue
            name = getattr(node.exc.func, "id", getattr(node.exc.func, "attr", ""))
            text = _text(node.exc.args[0]).strip() if node.exc.args else ""
            line = f"{name}: {text}"
            if len(text) >= SHORTEST and line not in told:
                told.add(line)
                yield line


def _text(node: ast.expr) -> str:  # noqa: PLR0911 - one case a line
    match node:
        case ast.Constant(value=value):
            return str(value)
        case ast.JoinedStr(values=values):
            return "".join(_text(value) for value in values)
        case ast.FormattedValue():
            return "32"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
        case ast.BinOp(left=left):
            return _text(left)
        case ast.Call(func=ast.Attribute(value=value)):
            return _text(value)
        case _:
            return ""


def main() -> int:
    """Print how the messages are explained; 1 where one is taken for memory."""
    counts: Counter[str] = Counter()
    blamed: list[str] = []
    for line in raised(sources()):
        findings = explain(line.encode())
        counts[findings[0].code if findings else "unknown"] += 1
        blamed += [line] if findings and findings[0].is_memory else []
    print(f"{counts.total():,} messages, {len(blamed)} taken for memory")
    print("  " + ", ".join(f"{code} {number}" for code, number in counts.most_common()))
    for line in blamed:
        print(f"  {line[:200]}")
    return int(bool(blamed))


if __name__ == "__main__":
    sys.exit(main())
