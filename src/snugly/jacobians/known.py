"""What is known of a function from an earlier call: its shapes, its plans, its compiled programs.

A second call with the same function and shapes neither traces nor predicts again. Nothing here
keeps a function or model alive: what is known of it goes when it goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from snugly.errors import MemoryLimitExceeded
from snugly.jacobians.choosing import choose
from snugly.jacobians.lines import Lines, filling_program, step_program, unconnected
from snugly.jacobians.subject import Subject, owner_of, tensorflow
from snugly.jacobians.surroundings import still_holds, surroundings, unchanged

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from snugly.jacobians.plan import Plan, Request

_known: WeakKeyDictionary[Any, dict[Hashable, Known]] = WeakKeyDictionary()


class Known:
    """A subject with the plans and programs made for it so far."""

    def __init__(self, subject: Subject, kind: Callable[..., Lines] = Lines) -> None:
        self.subject = subject
        self._kind = kind
        self.missing = unconnected(subject) if kind is Lines else []
        """Pairs of output and input without a path between them."""
        self.around: dict[str, Hashable] = {}
        """What the function read besides its input when it was traced."""
        self.pace: dict[Hashable, float] = {}
        """Seconds a turn of each filling took when it was last done."""
        self._plans: dict[Hashable, Plan | MemoryLimitExceeded] = {}
        self._programs: dict[Hashable, Any] = {}

    def plan(self, request: Request, leaves: Sequence[Any] | None, narrow: Any = None) -> Plan:
        """The plan for a request, made once; or the refusal, which is not worked out twice either.

        Raises:
            MemoryLimitExceeded: Nothing fits.
        """
        key = (request, narrow)
        if key not in self._plans:
            try:
                self._plans[key] = choose(self.subject, request, leaves, narrow, self._kind)
            except MemoryLimitExceeded as refusal:
                self._plans[key] = refusal
        known = self._plans[key]
        if isinstance(known, MemoryLimitExceeded):
            raise known.with_traceback(None)
        return known

    def step(self, lines: Lines, chunk: int, *, vectorised: bool, narrow: Any = None) -> Any:
        """The program that gives some lines."""
        key = ("step", type(lines), lines, chunk, vectorised, narrow)
        return self.program(
            key, lambda: step_program(lines, chunk, vectorised=vectorised, narrow=narrow)
        )

    def filling(
        self, lines: Lines, chunk: int, *, vectorised: bool, whole: bool, narrow: Any = None
    ) -> Any:
        """The program that fills a result in place."""
        key = ("fill", type(lines), lines, chunk, vectorised, whole, narrow)

        def make() -> Any:
            return filling_program(lines, chunk, vectorised=vectorised, whole=whole, narrow=narrow)

        return self.program(key, make)

    def of_batch(self, batch: int) -> Known:
        """The same function for so many examples at a time; itself for 0."""
        if not batch:
            return self
        return self.program(("batch", batch), lambda: Known(self.subject.of_batch(batch)))

    def program(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A compiled program, made once."""
        if key not in self._programs:
            self._programs[key] = make()
        return self._programs[key]


def known(function: Any, x: Any, wrt: Any = None) -> Known:
    """What is known of a function with inputs of these shapes."""
    tf = tensorflow()
    owner, name = owner_of(function)
    try:
        entries = _known.setdefault(owner, {})
    except TypeError:  # cannot be referred to weakly, or has no hash
        return Known(Subject(function, x, wrt))
    key = (name, _outline(tf, x), _identities(tf, wrt))
    if key not in entries or not still_holds(entries[key].around, function):
        before = surroundings(function)
        entries[key] = Known(Subject(function, x, wrt))
        entries[key].around = unchanged(before, surroundings(function))
    return entries[key]


def _outline(tf: Any, x: Any) -> Hashable:
    leaves = []
    for leaf in tf.nest.flatten(x):
        tensor = leaf if isinstance(leaf, tf.TensorSpec) else tf.convert_to_tensor(leaf)
        leaves.append((tuple(tensor.shape), tensor.dtype))
    empty = tf.nest.map_structure(lambda _: 0, x)
    return repr(empty), tuple(leaves)


def _identities(tf: Any, wrt: Any) -> Hashable:
    return None if wrt is None else tuple(id(variable) for variable in tf.nest.flatten(wrt))
