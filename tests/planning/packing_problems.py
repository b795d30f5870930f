"""Problems for the tests of packing: small enough to be solved by trying everything."""

from itertools import permutations

from hypothesis import strategies as st

from snugly.planning.packing import Buffer


def never() -> bool:
    return False


def always() -> bool:
    return True


def make(*shapes: tuple[int, int, int]) -> list[Buffer]:
    return [Buffer(f"b{place}", *shape) for place, shape in enumerate(shapes)]


@st.composite
def buffers(draw, most=6, longest=6, largest=9, least=0):
    count = draw(st.integers(1, most))
    shapes = []
    for _ in range(count):
        lower = draw(st.integers(0, longest - 1))
        upper = draw(st.integers(lower + 1, longest))
        shapes.append((lower, upper, draw(st.integers(least, largest))))
    return make(*shapes)


def lowest_height(problem: list[Buffer], alignment: int = 1) -> int:
    """The least height, by placing the buffers in every order, each as low as it goes.

    A best packing is among them: placed in rising order of its offsets, no buffer ends up higher.
    """
    real = [one for one in problem if one.size]
    return min((_height(order, alignment) for order in permutations(real)), default=0)


def _height(order: tuple[Buffer, ...], alignment: int) -> int:
    placed: list[tuple[Buffer, int]] = []
    for one in order:
        placed.append((one, _lowest(placed, one, alignment)))
    return max((offset + one.size for one, offset in placed), default=0)


def _lowest(placed: list[tuple[Buffer, int]], one: Buffer, alignment: int) -> int:
    offset = 0
    others = sorted(
        (start, other.size)
        for other, start in placed
        if other.lower < one.upper and one.lower < other.upper
    )
    for start, size in others:
        if start >= offset + one.size:
            break
        offset = max(offset, -(-(start + size) // alignment) * alignment)
    return offset


def share_bytes(problem: list[Buffer], offsets: tuple[int, ...]) -> bool:
    """Whether two buffers that are live at once overlap, by comparing all pairs."""
    pairs = list(zip(problem, offsets, strict=True))
    return any(
        one.lower < other.upper
        and other.lower < one.upper
        and start < begin + other.size
        and begin < start + one.size
        and one.size > 0
        and other.size > 0
        for place, (one, start) in enumerate(pairs)
        for other, begin in pairs[:place]
    )


@st.composite
def tight(draw, moments=5):
    """Buffers that fill every moment to the same height: hard, and often impossible."""
    count = draw(st.integers(3, moments))
    shapes = []
    for _ in range(draw(st.integers(3, 5))):
        lower = draw(st.integers(0, count - 2))
        upper = draw(st.integers(lower + 2, min(count, lower + 3)))
        shapes.append((lower, upper, draw(st.integers(1, 4))))
    live = [
        sum(size for lower, upper, size in shapes if lower <= moment < upper)
        for moment in range(count)
    ]
    height = max(live) + draw(st.integers(0, 2))
    fillers = [(moment, moment + 1, height - live[moment]) for moment in range(count)]
    return make(*shapes, *(shape for shape in fillers if shape[2])), height


def can_fit(problem: list[Buffer], capacity: int) -> bool:
    """Whether some order of placing fits, by trying all; an order is left where it is too high."""
    return _can_fit([], list(problem), capacity)


def _can_fit(placed: list[tuple[Buffer, int]], left: list[Buffer], capacity: int) -> bool:
    if not left:
        return True
    for place, one in enumerate(left):
        offset = _lowest(placed, one, 1)
        if offset + one.size <= capacity and _can_fit(
            [*placed, (one, offset)], left[:place] + left[place + 1 :], capacity
        ):
            return True
    return False
