"""Retracing: how often each `tf.function` was traced, from which line, and because of what.

A function that is kept is judged by its calls: it leaks if ever new arguments make ever new traces.
A function that is made anew in each turn of a loop is judged by the line that makes it.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from snugly.recording.leaks.growth import Series
from snugly.recording.leaks.populations import Population
from snugly.recording.leaks.sites import is_ours, is_own, site_of, users_frame, way_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from snugly.recording.leaks.hooks import Hooks
    from snugly.recording.leaks.journal import Journal
    from snugly.recording.leaks.sites import Site

FUNCTION = "function"
PYTHON_VALUE = "the Python value"
# The folders of TensorFlow that make functions, and that wrap what makes them.
_PACKAGES = ("polymorphic_function", "/tensorflow/python/util/")
_MOST_SIGNATURES = 12
_MOST_FUNCTIONS = 4096
_LONGEST_VALUE = 24
_MOST_PARTS = 6


@dataclass(slots=True)
class Traces:
    """The calls and traces of one function."""

    name: str
    parameters: tuple[str, ...]
    is_users: bool  # whether the user's own code made it
    calls: int = 0
    traces: int = 0
    sites: Counter[Site] = field(default_factory=Counter)
    series: Series = field(default_factory=Series)  # calls → traces
    signatures: list[dict[str, str]] = field(default_factory=list)
    shapes: set[str] = field(default_factory=set)  # of calls, where each shape is compiled anew
    compiled: Series = field(default_factory=Series)  # calls → shapes
    population: Population | None = None  # memory in use, read at each trace
    maker: Population | None = None
    last_event: int = 0


class Retracings:
    """What is known of every `tf.function`."""

    def __init__(self, hooks: Hooks, journal: Journal) -> None:
        self._hooks = hooks
        self._journal = journal
        self._by_function: weakref.WeakKeyDictionary[Any, Traces] = weakref.WeakKeyDictionary()
        self.all: list[Traces] = []

    def traced(self, maker: Population) -> int:
        """How many of the functions that one call made were ever traced."""
        return sum(traces.maker is maker for traces in self.all)

    def watch(self) -> None:
        """Put the hooks in place."""
        from tensorflow.python.eager.polymorphic_function import polymorphic_function

        function = polymorphic_function.Function
        self._hooks.wrap(function, "__call__", self._call)
        self._hooks.wrap(function, "get_concrete_function", self._call)
        self._hooks.after(function, "__init__", self._made)

    def _made(self, _: None, args: tuple[Any, ...], __: dict[str, Any]) -> None:
        made = args[0]
        frame = sys._getframe(3)  # noqa: SLF001 - past the hook
        if len(self.all) >= _MOST_FUNCTIONS:
            return
        traces = Traces(made.name, _parameters(made), is_users=_users_made(frame))
        if traces.is_users:
            traces.maker = self._journal.made(FUNCTION, made, frame)
        self._by_function[made] = traces

    def _call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        hooks = self._hooks

        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            if not hooks.active:
                return original(function, *args, **kwargs)
            before = function.experimental_get_tracing_count()
            try:
                return original(function, *args, **kwargs)
            finally:
                after = function.experimental_get_tracing_count()
                frame = sys._getframe(1)  # noqa: SLF001
                hooks.safely(self._called, function, after - before, args, kwargs, frame)

        return call

    def _called(
        self,
        function: Any,
        new: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
    ) -> None:
        traces = self._by_function.get(function)
        if traces is None:  # made before the watch
            if len(self.all) >= _MOST_FUNCTIONS:
                return
            traces = Traces(function.name, _parameters(function), is_users=True)
            self._by_function[function] = traces
        traces.calls += 1
        if getattr(function, "_jit_compile", None) and len(traces.shapes) < _MOST_FUNCTIONS:
            self._compiled(traces, args, kwargs, frame)
        if new <= 0:
            return
        self._journal.events += 1
        traces.last_event = self._journal.events
        if not traces.traces:
            self.all.append(traces)
        traces.traces += new
        traces.series.add(traces.calls, traces.traces)
        self._read(traces, frame)
        traces.signatures.append(describe(traces.parameters, args, kwargs))
        if len(traces.signatures) > _MOST_SIGNATURES:
            del traces.signatures[_MOST_SIGNATURES // 2]  # the first and the newest say most

    def _compiled(
        self, traces: Traces, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> None:
        """XLA compiles a trace anew for each shape that the trace leaves open."""
        shape = str(describe(traces.parameters, args, kwargs))
        if shape not in traces.shapes:
            traces.shapes.add(shape)
            self._journal.events += 1
            traces.last_event = self._journal.events
            if len(traces.shapes) == 1 and traces not in self.all:
                self.all.append(traces)
            self._read(traces, frame)
            traces.signatures.append(describe(traces.parameters, args, kwargs))
            del traces.signatures[_MOST_SIGNATURES:]
        traces.compiled.add(traces.calls, len(traces.shapes))

    def _read(self, traces: Traces, frame: FrameType) -> None:
        """Count the trace for the user's line, and read the memory in use there."""
        users = users_frame(frame)
        if users is None:
            return
        site = site_of(users)
        traces.sites[site] += 1
        if traces.population is None:
            traces.population = Population("trace", site, traces.name)
            traces.population.way = way_of(users)
        traces.population.created += 1
        if traces.population.created > 1:
            self._journal.read(traces.population)


def _users_made(frame: FrameType | None) -> bool:
    """Whether the user's code asked for a function, and not Keras or a dataset on its behalf."""
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_own(filename):
            return True
        if not is_ours(filename) and not any(package in filename for package in _PACKAGES):
            return False
        frame = frame.f_back
    return False


def _parameters(function: Any) -> tuple[str, ...]:
    try:
        return tuple(function.function_type.parameters)
    except Exception:  # noqa: BLE001 - a name is nice to have
        return ()


def describe(
    parameters: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, str]:
    """What each argument looks like to a trace."""
    described: dict[str, str] = {}
    for index, value in enumerate(args):
        name = f" (`{parameters[index]}`)" if index < len(parameters) else ""
        described[f"argument {index}{name}"] = _describe(value)
    for name, value in kwargs.items():
        described[f"argument `{name}`"] = _describe(value)
    return described


def _describe(value: Any, depth: int = 2) -> str:
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return f"{PYTHON_VALUE} {repr(value)[:_LONGEST_VALUE]}"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        sizes = ", ".join("?" if size is None else str(size) for size in _sizes(shape))
        return f"{getattr(dtype, 'name', dtype)}[{sizes}]"
    if depth and isinstance(value, (list, tuple)):
        parts = [_describe(each, depth - 1) for each in value[:_MOST_PARTS]]
        return f"a {type(value).__name__} of {len(value)}: {', '.join(parts)}"
    if depth and isinstance(value, dict):
        items = list(value.items())[:_MOST_PARTS]
        parts = [f"{str(key)[:_LONGEST_VALUE]}: {_describe(v, depth - 1)}" for key, v in items]
        return f"a dict of {len(value)}: {', '.join(parts)}"
    return f"the {type(value).__name__} object {id(value):#x}"


def _sizes(shape: Any) -> list[Any]:
    try:
        return list(shape)
    except (TypeError, ValueError):
        return ["?"]
