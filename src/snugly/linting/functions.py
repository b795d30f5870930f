"""Functions that TensorFlow traces: which call runs a `tf.function`, and how it was made."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from snugly.linting.scopes import FUNCTIONS, parameters_of

if TYPE_CHECKING:
    from snugly.linting.program import Program
    from snugly.linting.scopes import FunctionNode

TRACERS: Final = frozenset({"tensorflow.function", "tensorflow.compat.v1.function"})
_PARTIALS: Final = frozenset({"functools.partial", "partial"})


@dataclass(frozen=True, slots=True)
class Traced:
    """A function that is traced, and the options that decide how often."""

    body: FunctionNode | None
    options: dict[str, ast.expr]

    @property
    def has_signature(self) -> bool:
        """Whether one trace serves all shapes."""
        value = self.options.get("input_signature")
        return value is not None and not _is(value, None)

    @property
    def relaxes(self) -> bool:
        """Whether a second shape makes the trace general."""
        return any(
            _is(self.options.get(name), True)
            for name in ("reduce_retracing", "experimental_relax_shapes")
        )

    @property
    def compiles(self) -> bool:
        """Whether XLA compiles it, for every shape anew."""
        return any(
            _is(self.options.get(name), True) for name in ("jit_compile", "experimental_compile")
        )


def is_tracer_call(program: Program, call: ast.Call) -> bool:
    """Whether a call is `tf.function(…)`."""
    return program.name_of_call(call) in TRACERS


def traced_definition(program: Program, function: ast.AST | None) -> Traced | None:
    """How a function is traced by its decorators, if it is."""
    for decorator in getattr(function, "decorator_list", ()):
        if program.resolve(decorator) in TRACERS:
            return Traced(function, {})  # type: ignore[arg-type]
        if isinstance(decorator, ast.Call):
            options = _options(decorator)
            if program.resolve(decorator.func) in TRACERS:
                return Traced(function, options)  # type: ignore[arg-type]
            is_partial = program.resolve(decorator.func) in _PARTIALS
            if is_partial and decorator.args and program.resolve(decorator.args[0]) in TRACERS:
                return Traced(function, options)  # type: ignore[arg-type]
    return None


def traced_call(program: Program, call: ast.Call) -> Traced | None:
    """The traced function that a call runs, where that can be seen."""
    if "function" not in program.words:
        return None  # nothing here can be `tf.function`, whatever it is called
    key = ("traced", call)
    if key not in program.remembered:
        program.remembered[key] = None
        program.remembered[key] = _traced_value(program, call.func, call, 3)
    return program.remembered[key]  # type: ignore[return-value]


def _traced_value(program: Program, node: ast.AST, place: ast.Call, depth: int) -> Traced | None:  # noqa: C901, PLR0911, PLR0912 - one case a line
    if depth <= 0:
        return None
    if isinstance(node, ast.Name):
        definition = program.definition(node)
        if isinstance(definition, FUNCTIONS):
            traced = traced_definition(program, definition)
            if traced is not None:
                return traced
        for binding in reversed(program.bindings(node)):
            if binding.how == "value" and isinstance(binding.value, ast.Call | ast.Name):
                return _traced_value(program, binding.value, place, depth - 1)
        return None
    if isinstance(node, ast.Attribute):
        owner = program.class_behind(node.value, place)
        if owner is not None:
            traced = traced_definition(program, program.method(owner, node.attr))
            if traced is not None:
                return traced
        for value in program.attribute_values(node):
            if isinstance(value, ast.Call):
                return _traced_value(program, value, place, depth - 1)
        return None
    if isinstance(node, ast.Call):
        if is_tracer_call(program, node):
            return Traced(_function_given(program, node), _options(node))
        if isinstance(node.func, ast.Call) and is_tracer_call(program, node.func):
            return Traced(_function_given(program, node), _options(node.func))
        return _traced_result(program, node, place, depth)
    return None


def _traced_result(program: Program, call: ast.Call, place: ast.Call, depth: int) -> Traced | None:
    """`step = make_step()`: what the maker returns; `step = Step()`: its `__call__`."""
    if isinstance(call.func, ast.Name):
        owner = program.definition(call.func)
        if isinstance(owner, ast.ClassDef):
            return traced_definition(program, program.method(owner, "__call__"))
    maker = program.callee(call)
    if maker is None or isinstance(maker, ast.Lambda):
        return None
    for node in program.body_nodes(maker):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Name | ast.Call):
            traced = _traced_value(program, node.value, place, depth - 1)
            if traced is not None:
                return traced
    return None


def _function_given(program: Program, call: ast.Call) -> FunctionNode | None:
    if not call.args:
        return None
    given = call.args[0]
    if isinstance(given, ast.Lambda):
        return given
    if isinstance(given, ast.Name):
        definition = program.definition(given)
        return definition if isinstance(definition, FUNCTIONS) else None
    if isinstance(given, ast.Attribute):
        owner = program.class_behind(given.value, call)
        return None if owner is None else program.method(owner, given.attr)
    return None


def arguments_of(traced: Traced, call: ast.Call) -> list[tuple[str | None, ast.expr]]:
    """The arguments of a call, each with the parameter that it fills, where that is known."""
    names: list[str] = []
    if traced.body is not None:
        names = [one.arg for one in parameters_of(traced.body)]
        if names and names[0] in {"self", "cls"}:
            names = names[1:]
    placed: list[tuple[str | None, ast.expr]] = [
        (names[place] if place < len(names) else None, value)
        for place, value in enumerate(call.args)
        if not isinstance(value, ast.Starred)
    ]
    return placed + [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]


def _options(call: ast.Call) -> dict[str, ast.expr]:
    named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if len(call.args) > 1:  # tf.function(func, input_signature, …)
        named.setdefault("input_signature", call.args[1])
    return named


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value
