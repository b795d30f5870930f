"""A step as rows of sums, from which a solver finds the cheapest plan there is.

A plan is two answers for each part: is it computed again, and is it in one segment with the part
before it. Whether two parts are in the same segment follows, and from that, at each moment of both
passes, which values are there; the sums are those of `check`, written as rows that a solver takes.
Nothing is rounded or left out, which is where `chain` differs: it counts what is stored part by
part, and cannot know that a value is let go before the backward pass comes to its maker, or that it
need not be stored because all who take it are kept.

What is not looked at, here or there: segments of parts that are not next to each other in the row,
parts that are computed more than twice, another order of the parts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snugly.planning.recomputing.check import peak_of
from snugly.planning.recomputing.passes import merged
from snugly.planning.solvers import Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.planning.recomputing.problem import Gradient, Problem, Segments, Value
    from snugly.planning.solvers import Solution


@dataclass(frozen=True, slots=True)
class _Claim:
    """A sum that says, for any plan, whether something is so: 1 where it is, 0 or less if not."""

    constant: int
    terms: tuple[tuple[int, int], ...] = ()
    """Columns, and what each adds."""
    tidy: bool = True
    """Whether it is never less than 0, and can be counted as it is."""


class Formulation:
    """A problem as rows of sums over zeros and ones.

    Args:
        problem: the step.
        budget: for all that is above weights, inputs and optimizer. None asks for the plan with
            the least peak, whatever it costs.
    """

    def __init__(self, problem: Problem, budget: int | None) -> None:
        self.program = Program()
        self._budget = peak_of(problem, ()) if budget is None else budget
        self._share = self.program.column(cost=1.0) if budget is None else None
        self._pairs: dict[tuple[int, int], int] = {}
        self._either: dict[tuple[_Claim, ...], int] = {}
        self._again = [
            self.program.column(cost=cost, most=int(not part.fixed), decided=True)
            for part in problem.parts
            for cost in (part.seconds if self._share is None else 0.0,)
        ]
        self._joined = [self.program.column(decided=True) for _ in problem.parts[1:]]
        for place, joined in enumerate(self._joined):
            self._below(joined, self._again[place])
            self._below(joined, self._again[place + 1])
        values, gradients = merged(problem)
        for index, part in enumerate(problem.parts):
            again = _Claim(0, ((self._again[index], 1),))
            forward = [(part.forward, [_Claim(1)])]
            second = [(part.forward, [again])]
            backward = [(part.backward, [_Claim(1)])]
            for value in values:
                if value.maker <= index:
                    forward.append((value.bytes, self._at_forward(value, index)))
                    second.append((value.bytes, list(self._at_second(value, index))))
                    second.append((value.bytes, self._remade_at_second(value, index)))
                    backward.append((value.bytes, list(self._at_backward(value, index))))
                    backward.append((value.bytes, self._remade_at_backward(value, index)))
            for gradient in gradients:
                if index <= gradient.maker:
                    second.append((gradient.bytes, self._waiting(gradient, index)))
                    backward.append((gradient.bytes, _present(gradient, index)))
            for alive in (forward, second, backward):
                self._hold(alive)

    def segments(self, solution: Solution) -> Segments:
        """The plan that a solution is."""
        assert solution.columns is not None
        found: list[tuple[int, int]] = []
        for place, column in enumerate(self._again):
            if not solution.columns[column]:
                continue
            if found and found[-1][1] == place and solution.columns[self._joined[place - 1]]:
                found[-1] = found[-1][0], place + 1
            else:
                found.append((place, place + 1))
        return tuple(found)

    def _hold(self, alive: list[tuple[int, list[_Claim]]]) -> None:
        """Hold what is alive at one moment inside the budget."""
        columns: defaultdict[int, int] = defaultdict(int)
        always = 0
        for size, claims in alive:
            claim = self._any(claims)
            always += size * claim.constant
            for column, times in claim.terms:
                columns[column] += size * times
        if self._share is None:
            self.program.at_most(columns, self._budget - always)
        else:
            columns[self._share] = -self._budget
            self.program.at_most(columns, -always)

    # What follows from a plan. The second making of a part that is kept has no moment; what these
    # say is alive at it is then never more than at its backward pass, so that it holds no plan in.

    def _at_forward(self, value: Value, index: int) -> list[_Claim]:
        """The first making while a part runs forward."""
        taken = max((value.maker, *value.used_by))
        if index == value.maker or index <= taken - value.given_up:
            return [_Claim(1)]
        needed = max(value.needed_by, default=-1)
        kept = [_Claim(1, ((self._same(value.maker, needed), -1),))] if needed >= 0 else []
        return kept + [self._apart(value, user) for user in value.used_by if user > needed]

    def _at_second(self, value: Value, index: int) -> Iterator[_Claim]:
        """The first making while a part is computed again."""
        yield from self._at_backward(value, index)
        takers = [user for user in value.used_by if user >= index]
        takers += [user for user in value.needed_by if user > index]
        if takers:
            near = min(takers)  # whatever is true of one further off is true of it
            inside, home = self._same(index, near), self._same(value.maker, near)
            if inside != home:
                yield _Claim(0, ((inside, 1), (home, -1)))

    def _at_backward(self, value: Value, index: int) -> Iterator[_Claim]:
        """The first making while a part's backward pass runs."""
        needed = max((user for user in value.needed_by if user <= index), default=-1)
        if needed >= 0:
            yield _Claim(1, ((self._same(value.maker, needed), -1),))
        for user in value.used_by:
            if needed < user < index:  # those before are in one segment with it, or as far from it
                here = (self._same(user, index), -1)
                claim = self._apart(value, user)
                yield _Claim(0, (*claim.terms, here), tidy=False)

    def _remade_at_second(self, value: Value, index: int) -> list[_Claim]:
        """The second making while a part is computed again."""
        ends = [user for user in value.used_by if user >= index]
        ends += [max(index, min(value.needed_by))] if value.needed_by else []
        return [self._within(value, min(ends))] if ends else []

    def _remade_at_backward(self, value: Value, index: int) -> list[_Claim]:
        """The second making while a part's backward pass runs."""
        needed = value.needed_by and min(value.needed_by) <= index
        return [self._within(value, index)] if needed else []

    def _waiting(self, gradient: Gradient, index: int) -> list[_Claim]:
        """A gradient while a part is computed again."""
        near = max(index, gradient.taker)
        if gradient.maker in {index, near}:
            return []
        home = (self._same(index, gradient.maker), -1)
        return [_Claim(0, ((self._same(index, near), 1), home))]

    def _apart(self, value: Value, user: int) -> _Claim:
        """Whether a part is computed again, in another segment than what made the value."""
        return _Claim(0, ((self._again[user], 1), (self._same(value.maker, user), -1)))

    def _within(self, value: Value, user: int) -> _Claim:
        return _Claim(0, ((self._same(value.maker, user), 1),))

    def _below(self, column: int, other: int) -> None:
        self.program.at_most({column: 1, other: -1}, 0)

    def _same(self, first: int, last: int) -> int:
        """The column that says whether two parts are in one segment, and so computed again."""
        if first == last:
            return self._again[first]
        if first + 1 == last:
            return self._joined[first]
        if (first, last) not in self._pairs:
            nearer, end = self._same(first, last - 1), self._joined[last - 1]
            column = self._pairs[first, last] = self.program.column()
            self._below(column, nearer)
            self._below(column, end)
            self.program.at_most({nearer: 1, end: 1, column: -1}, 1)
        return self._pairs[first, last]

    def _any(self, claims: list[_Claim]) -> _Claim:
        """Whether one of several claims is so, tidy."""
        if not claims:
            return _Claim(0)
        if len(claims) == 1 and claims[0].tidy:
            return claims[0]
        key = tuple(claims)
        if key not in self._either:
            column = self._either[key] = self.program.column()
            for claim in claims:
                columns = defaultdict(int, {column: -1})
                for one, times in claim.terms:
                    columns[one] += times
                self.program.at_most(columns, -claim.constant)
        return _Claim(0, ((self._either[key], 1),))


def _present(gradient: Gradient, index: int) -> list[_Claim]:
    """A gradient while a part's backward pass runs, which does not hang on the plan."""
    alive = index == gradient.maker or index >= gradient.taker + gradient.given_up
    return [_Claim(1)] if alive else []
