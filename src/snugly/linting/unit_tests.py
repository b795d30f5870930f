"""Unit tests: code whose data is small on purpose and whose process ends at once.

A list of a whole dataset, a model a case, a `predict` a row are how tests are written, and what
they keep is gone when the test is over. Rules about growth and about the size of data are not
asked there; those about what fails, or could never fit, are.

A file's name decides nothing: `test.py` and `test_model.py` are what many call the script that
evaluates a model, and `test_step` is a step.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.kinds import last_name
from snugly.linting.scopes import FUNCTIONS

if TYPE_CHECKING:
    from snugly.linting.program import Program

_FRAMEWORKS: Final = frozenset({"pytest", "unittest", "absl"})
_STEPS: Final = ("step", "batch", "epoch", "loop", "data", "model", "set")
"""`test_step(x, y)`, `test_model(ds)` are part of a program, where they have parameters."""


def is_test_file(program: Program) -> bool:
    """Whether a file defines a test case: what else it defines is there to help it."""
    return any(
        isinstance(statement, ast.ClassDef) and is_test_case(program, statement)
        for statement in program.tree.body
    )


def in_unit_test(program: Program, node: ast.AST) -> bool:
    """Whether a node stands in a test case, or in a function that a test runner calls."""
    for ancestor in program.ancestors(node):
        if isinstance(ancestor, ast.ClassDef) and is_test_case(program, ancestor):
            return True
        if isinstance(ancestor, FUNCTIONS) and _is_test_function(program, ancestor):
            return True
    return False


def is_test_case(program: Program, owner: ast.ClassDef, depth: int = 3) -> bool:
    """Whether a class is a `TestCase`, itself or through a class of this file."""
    for base in owner.bases:
        if (last_name(base) or "").endswith("TestCase"):
            return True
        if depth and isinstance(base, ast.Name):
            parent = program.definition(base)
            if isinstance(parent, ast.ClassDef) and parent is not owner:
                return is_test_case(program, parent, depth - 1)
    return False


def _is_test_function(program: Program, function: ast.AST) -> bool:
    name = getattr(function, "name", "")
    if not name.startswith("test_") or not program.modules & _FRAMEWORKS:
        return False
    arguments = getattr(function, "args", None)
    return not (name.endswith(_STEPS) and arguments is not None and arguments.args)
