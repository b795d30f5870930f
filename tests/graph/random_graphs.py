"""Sound graphs of every kind, for property tests: `sound_graphs()` is a Hypothesis strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from snugly.graph import Access, Graph, Kind, Operation, Resident, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (0, 1, 100, 256, 1000)
SECONDS = (0.0, 1e-6, 1e-4)


@st.composite
def sound_graphs(draw: st.DrawFn, most_operations: int = 15) -> Graph:
    """Up to so many operations that compute, forward, alias, make lists and touch variables."""
    return _Growth(draw).grow(draw(st.integers(0, most_operations)))


class _Growth:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.graph = Graph()
        self.values: list[int] = []  # what an operation may use
        self.variables: list[int] = []
        self.lists: list[int] = []
        self.room: list[int] = []  # bytes of the buffer behind each tensor

    def grow(self, count: int) -> Graph:
        for _ in range(self.draw(st.integers(0, 4))):
            self.variables.append(self.resident(shareable=True))
        for _ in range(self.draw(st.integers(0, 2))):
            self.values.append(self.resident())
        for _ in range(self.draw(st.integers(0, 2))):
            self.graph.inputs.append(self.tensor())
        self.values += self.graph.inputs
        for _ in range(count):
            self.draw(st.sampled_from(self.possible()))()
        if self.values:
            self.graph.outputs += self.draw(st.lists(st.sampled_from(self.values), max_size=3))
        return self.graph

    def possible(self) -> list[Callable[[], None]]:
        kinds = [self.compute]
        if self.variables:
            kinds += [self.read, self.update]
            kinds += [self.assign]
        if self.values:
            kinds += [self.make_list]
        if self.lists:
            kinds += [self.read_list]
        return kinds

    def tensor(self, holds: tuple[int, ...] = (), size: int | None = None) -> int:
        size = self.draw(st.sampled_from(SIZES)) if size is None else size
        self.graph.tensors.append(Tensor(size, Kind.ACTIVATION, holds))
        self.room.append(size)
        return len(self.graph.tensors) - 1

    def resident(self, *, shareable: bool = False) -> int:
        tensor = self.tensor()
        size = self.graph.tensors[tensor].bytes
        owners = [one.tensor for one in self.graph.resident if one.shares is None]
        alike = [one for one in owners if self.room[one] == size]
        shares = self.draw(st.sampled_from([None, *alike])) if shareable else None
        scratch = self.draw(st.integers(0, 2))
        self.graph.resident.append(Resident(tensor, f"resident{tensor}", scratch, shares))
        return tensor

    def emit(  # noqa: PLR0913 - an operation has that many sides
        self,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...] = (),
        *,
        forwards: tuple[tuple[int, ...], ...] = (),
        aliases: tuple[int, ...] = (),
        variables: tuple[int, ...] = (),
        access: Access | None = None,
    ) -> None:
        index = len(self.graph.operations)
        after = self.draw(st.lists(st.integers(0, index - 1), max_size=2)) if index else []
        self.graph.operations.append(
            Operation(
                f"operation{index}",
                "Any",
                inputs,
                outputs,
                tuple(after),
                forwards,
                aliases,
                tuple(self.draw(st.lists(st.sampled_from(SIZES[1:]), max_size=2))),
                variables,
                access,
                self.draw(st.booleans()),
                self.draw(st.sampled_from(SECONDS)),
            )
        )
        self.values += outputs

    def some_values(self) -> tuple[int, ...]:
        if not self.values:
            return ()
        return tuple(self.draw(st.lists(st.sampled_from(self.values), max_size=3)))

    def compute(self) -> None:
        inputs = self.some_values()
        outputs = tuple(self.tensor() for _ in range(self.draw(st.integers(0, 2))))
        forwards: tuple[tuple[int, ...], ...] = ()
        aliases: tuple[int, ...] = ()
        if self.draw(st.booleans()):
            forwards = tuple(self.some_positions(inputs, self.room[output]) for output in outputs)
        if inputs and self.draw(st.booleans()):
            aliases = tuple(self.draw(st.sampled_from([-1, *inputs])) for _ in outputs)
        self.emit(inputs, outputs, forwards=forwards, aliases=aliases)
        self.note_aliases(outputs, aliases)

    def some_positions(self, inputs: tuple[int, ...], size: int) -> tuple[int, ...]:
        """Inputs that have the right size to be taken over."""
        fitting = [position for position, one in enumerate(inputs) if self.room[one] == size]
        if not fitting:
            return ()
        return tuple(self.draw(st.lists(st.sampled_from(fitting), max_size=2)))

    def note_aliases(self, outputs: tuple[int, ...], aliases: tuple[int, ...]) -> None:
        for output, alias in zip(outputs, aliases, strict=False):
            if alias >= 0:
                self.room[output] = self.room[alias]

    def read(self) -> None:
        variable = self.draw(st.sampled_from(self.variables))
        output = self.tensor(size=0)
        self.emit((), (output,), variables=(variable,), access=Access.READ)
        self.room[output] = self.room[variable]

    def assign(self) -> None:
        variable = self.draw(st.sampled_from(self.variables))
        fitting = [value for value in self.values if self.room[value] == self.room[variable]]
        if fitting:
            value = self.draw(st.sampled_from(fitting))
            self.emit((value,), variables=(variable,), access=Access.ASSIGN)

    def update(self) -> None:
        some = st.lists(st.sampled_from(self.variables), min_size=1, max_size=3, unique=True)
        self.emit(self.some_values(), variables=tuple(self.draw(some)), access=Access.UPDATE)

    def make_list(self) -> None:
        items = self.some_values()
        output = self.tensor(items)
        self.emit(items, (output,))
        self.lists.append(output)

    def read_list(self) -> None:
        whole = self.draw(st.sampled_from(self.lists))
        held = self.graph.tensors[whole].holds
        alias = self.draw(st.sampled_from([-1, *held]))
        rest, item = self.tensor(held[:-1]), self.tensor()
        self.emit((whole,), (item, rest), aliases=(alias, -1))
        self.note_aliases((item,), (alias,))
        self.lists.append(rest)
