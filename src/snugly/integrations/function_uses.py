"""Which functions of TensorFlow must run on kernels that raise, and which may use oneDNN's.

A function with operations that crash where memory is refused is first run carefully, without
oneDNN, and what it needed is noted. Once its needs are known, and twice as much is left, it runs
with oneDNN again. So a step that does not fit raises, and one that does costs nothing after its
first runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.integrations.operation_needs import CRASHING, FUSED

if TYPE_CHECKING:
    from collections.abc import Iterable

SAFETY: Final = 2
"""So many times what a function was seen to need must be left for it to run with oneDNN."""
ALWAYS_LEFT: Final = 64 << 20
FEWEST_RUNS: Final = 3
LOOK_EVERY: Final = 16


@dataclass(slots=True)
class FunctionUse:
    """What is known of one function."""

    risky: bool
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
        return SAFETY * self.need + ALWAYS_LEFT

    def note_careful(self, seconds: float, need: int) -> None:
        """After a careful run."""
        if not self.careful_runs:
            self.first_seconds = seconds
        self.careful_runs += 1
        self.careful_seconds += seconds
        self.need = max(self.need, need)


class FunctionUses:
    """All functions that were called under a guard, by name; TensorFlow never reuses one."""

    def __init__(self) -> None:
        self._known: dict[bytes, FunctionUse] = {}

    def of(self, name: bytes, context: Any) -> FunctionUse:
        """What is known of a function; its operations are read when it is first called."""
        use = self._known.get(name)
        if use is None:
            use = self._known[name] = FunctionUse(is_risky(_operations(name, context)))
        return use


def is_risky(operations: Iterable[str]) -> bool:
    """Whether one of these operations crashes where memory is refused."""
    return any(name in CRASHING or name in FUSED for name in operations)


def _operations(name: bytes, context: Any) -> set[str]:
    """Names of all operations of a function, and of those it calls."""
    seen: set[str] = set()
    waiting, found = [name.decode()], set()
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
            found.add(node.op)
            for value in node.attr.values():
                if value.HasField("func"):
                    waiting.append(value.func.name)
                waiting += [function.name for function in value.list.func]
    return found
