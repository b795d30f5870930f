"""Which functions of TensorFlow must run on kernels that raise, and which may use oneDNN's.

A function with operations that crash where memory is refused is first run carefully, without
oneDNN, and what it needed is noted. Once its needs are known, and twice as much is left, it runs
with oneDNN again. So a step that does not fit raises, and one that does costs nothing after its
first runs. Inputs larger than any before are run carefully once more. What an input pipeline will
give next is not known; where its elements may differ in size, sixteen times as much must be left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.integrations.operation_needs import CRASHING, FUSED, PIPELINES, bytes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SAFETY: Final = 2
"""So many times what a function was seen to need must be left for it to run with oneDNN."""
UNSURE: Final = 16
"""The same where one element of an input pipeline may be far larger than those before it."""
ALWAYS_LEFT: Final = 64 << 20
FEWEST_RUNS: Final = 3
LOOK_EVERY: Final = 16
_NO_BYTES: Final = frozenset({7, 20, 21})  # DT_STRING, DT_RESOURCE, DT_VARIANT


@dataclass(slots=True)
class FunctionUse:
    """What is known of one function."""

    risky: bool
    starts_threads: bool = False
    """It takes elements of an input pipeline, which starts its threads with the first."""
    open_batches: bool = False
    """Elements of the pipeline have a first dimension that is not known before."""
    unsure: bool = False
    """One element may be far larger than those before it, and nobody can tell."""
    open_inputs: tuple[int, ...] = ()
    """Which of its inputs have dimensions that differ from call to call."""
    largest: int = 0
    """Bytes of those inputs, at most, when its need was measured."""
    need: int = 0
    careful_runs: int = 0
    fast_runs: int = 0
    first_seconds: float = 0.0
    careful_seconds: float = 0.0

    def is_known(self) -> bool:
        """Whether it ran carefully so often that preparing it once more has paid."""
        if self.fast_runs:
            return True
        return (
            self.careful_runs >= FEWEST_RUNS
            and self.careful_seconds - self.first_seconds >= self.first_seconds
        )

    def fits(self, room: int) -> bool:
        """Whether it may run with oneDNN, with so much left."""
        return self.is_known() and room > self.wanted()

    def wanted(self) -> int:
        """What must be left for that."""
        if self.unsure:
            return UNSURE * max(self.need, ALWAYS_LEFT) + ALWAYS_LEFT
        return SAFETY * self.need + ALWAYS_LEFT

    def size(self, inputs: Sequence[Any]) -> int:
        """Bytes of the inputs that differ from call to call."""
        return sum(bytes_of(inputs[place]) for place in self.open_inputs)

    def note_careful(self, seconds: float, need: int, size: int = 0) -> None:
        """After a careful run, with inputs of that size."""
        if not self.careful_runs:
            self.first_seconds = seconds
        self.careful_runs += 1
        self.careful_seconds += seconds
        self.need = max(self.need, need)
        self.largest = max(self.largest, size)


class FunctionUses:
    """All functions that were called under a guard, by name; TensorFlow never reuses one."""

    def __init__(self) -> None:
        self._known: dict[bytes, FunctionUse] = {}

    def of(self, name: bytes, context: Any) -> FunctionUse:
        """What is known of a function; its operations are read when it is first called."""
        use = self._known.get(name)
        if use is None:
            use = self._known[name] = _read(name, context)
        return use


def is_risky(operations: Iterable[str]) -> bool:
    """Whether one of these operations crashes where memory is refused."""
    return any(name in CRASHING or name in FUSED for name in operations)


def _read(name: bytes, context: Any) -> FunctionUse:
    """What the definition of a function says."""
    nodes = list(_nodes(name, context))
    operations = {node.op for node in nodes}
    elements = [
        shape
        for node in nodes
        if node.op.startswith("IteratorGetNext")
        for shape in node.attr["output_shapes"].list.shape
    ]
    return FunctionUse(
        is_risky(operations),
        not PIPELINES.isdisjoint(operations),
        open_batches=any(_is_open(shape) for shape in elements),
        unsure=any(_is_open(shape, beyond_first=True) for shape in elements),
        open_inputs=_open_inputs(name, context),
    )


def _open_inputs(name: bytes, context: Any) -> tuple[int, ...]:
    try:
        definition = context.get_function_def(name.decode())
    except Exception:  # noqa: BLE001 - as below
        return ()
    found: list[int] = []
    for place, word in enumerate(definition.signature.input_arg):
        if word.type in _NO_BYTES or place not in definition.arg_attr:
            continue
        shapes = definition.arg_attr[place].attr["_output_shapes"].list.shape
        if any(_is_open(shape) for shape in shapes):
            found.append(place)
    return tuple(found)


def _is_open(shape: Any, *, beyond_first: bool = False) -> bool:
    """Whether a dimension is not known; only the first of them is the batch's."""
    return shape.unknown_rank or any(one.size < 0 for one in shape.dim[int(beyond_first) :])


def _nodes(name: bytes, context: Any) -> Iterator[Any]:
    """All operations of a function, and of those it calls."""
    seen: set[str] = set()
    waiting = [name.decode()]
    while waiting:
        called = waiting.pop()
        if called in seen:
            continue
        seen.add(called)
        try:
            definition = context.get_function_def(called)
        except Exception:  # noqa: BLE001, S112 - a function that went away meanwhile
            continue
        for node in definition.node_def:
            yield node
            for value in node.attr.values():
                if value.HasField("func"):
                    waiting.append(value.func.name)
                waiting += [function.name for function in value.list.func]
