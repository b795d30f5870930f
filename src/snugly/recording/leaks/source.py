"""Source: loops, statements and functions of the user's code, read from its text.

Nothing is executed. A program without text (typed into a console) leaves these questions open.
"""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Larger files are generated; their lines mean nothing to anybody.
_MOST_LINES = 50_000

LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Text:
    """A file's syntax tree, with each node's parent."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree
        self.parents = {
            child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)
        }

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def function(self, node: ast.AST) -> ast.AST | None:
        """The function that a node is in."""
        return next((each for each in self.above(node) if isinstance(each, FUNCTIONS)), None)

    def loop(self, node: ast.AST) -> ast.AST | None:
        """The innermost loop around a node, in the same function. A loop's header is outside."""
        inside = node
        for each in self.above(node):
            if isinstance(each, FUNCTIONS):
                return None
            if isinstance(each, LOOPS) and inside in (*each.body, *each.orelse):
                return each
            inside = each
        return None


@lru_cache(maxsize=256)
def text_of(path: str) -> Text | None:
    """A file's tree; None where there is no text, or it is not Python."""
    lines = linecache.getlines(path)
    if not lines or len(lines) > _MOST_LINES:
        return None
    try:
        return Text(path, ast.parse("".join(lines)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def first_line(function: ast.AST) -> int:
    """As a code object counts it: a decorator belongs to its function."""
    decorators = getattr(function, "decorator_list", [])
    return min([getattr(function, "lineno", 0), *(each.lineno for each in decorators)])


@lru_cache(maxsize=4096)
def loops_at(path: str, line: int) -> tuple[tuple[int, int], ...]:
    """The first and last lines of the loops whose bodies hold a line, innermost first."""
    text = text_of(path)
    if text is None:
        return ()
    spans = {
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(text.tree)
        if isinstance(node, (*LOOPS, *COMPREHENSIONS))
        and _begin(node) <= line <= (node.end_lineno or 0)
        and not _is_behind_function(node, line)
    }
    return tuple(sorted(spans, key=lambda span: (-span[0], span[1])))


def _begin(loop: ast.AST) -> int:
    """The first line of what a loop repeats. Its header is run once."""
    body = getattr(loop, "body", None)
    return body[0].lineno if body else getattr(loop, "lineno", 0)


def loop_at(path: str, line: int) -> tuple[int, int] | None:
    """The innermost of them."""
    return next(iter(loops_at(path, line)), None)


def _is_behind_function(loop: ast.AST, line: int) -> bool:
    """Whether a function that is defined in the loop holds the line: then the loop may be over."""
    return any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body[0].lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(loop)
    )


def statement_at(path: str, line: int) -> tuple[int, int] | None:
    """The first and last line of the simple statement that holds a line."""
    text = text_of(path)
    if text is None:
        return None
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(text.tree)
        if isinstance(node, ast.stmt)
        and not hasattr(node, "body")
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(spans, default=None)
