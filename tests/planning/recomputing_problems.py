"""Steps to cut: rows of parts, and random ones with every plan there is."""

import itertools

from hypothesis import strategies as st

from snugly.planning.recomputing import Gradient, Part, Problem, Value


def row(count, size=100, **part):
    """Parts one after another, each needing what the one before it made, and its own result."""
    parts = tuple(Part(f"layer{i}", 1.0, **part) for i in range(count))
    values = tuple(
        Value(size, i, (i + 1,) if i + 1 < count else (), (i, i + 1) if i + 1 < count else (i,))
        for i in range(count)
    )
    gradients = tuple(Gradient(size, i, i - 1) for i in range(1, count))
    return Problem(parts, values, gradients)


@st.composite
def problems(draw, most=6):
    count = draw(st.integers(1, most))
    size = st.integers(0, 50)
    parts = tuple(
        Part(
            f"p{i}",
            draw(st.floats(0.1, 5)),
            draw(size),
            draw(size),
            fixed=draw(st.integers(0, 9)) == 0,
        )
        for i in range(count)
    )
    values = []
    for maker in range(count):
        for _ in range(draw(st.integers(0, 2))):
            later = st.sets(st.integers(maker, count - 1), max_size=3)
            used = tuple(sorted(draw(later) - {maker}))
            needed = tuple(sorted(draw(later)))
            values.append(Value(draw(size), maker, used, needed, draw(st.booleans())))
    gradients = tuple(
        Gradient(draw(size), maker, draw(st.integers(-1, maker)), draw(st.booleans()))
        for maker in range(count)
    )
    return Problem(parts, tuple(values), gradients)


def every_plan(problem):
    """All ways to cut the parts into kept ones and segments."""
    count = len(problem.parts)
    for marks in itertools.product((0, 1, 2), repeat=count):  # kept, begins a segment, goes on
        segments, valid = [], True
        for place, mark in enumerate(marks):
            if mark == 1:
                segments.append([place, place + 1])
            elif mark == 2:
                valid = valid and place > 0 and marks[place - 1] != 0
                if valid:
                    segments[-1][1] = place + 1
        fixed = any(part.fixed for a, b in segments for part in problem.parts[a:b])
        if valid and not fixed:
            yield tuple(map(tuple, segments))
