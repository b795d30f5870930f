"""Distances, held against playing the kernels' loops byte by byte."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugly.lite import distances
from snugly.lite.distances import (
    NEVER,
    Windows,
    broadcast,
    elementwise,
    enlarged,
    furthest,
    joined,
    padded,
)


def played(steps, distance):
    """Whether no step reads a byte that an earlier one has written over."""
    written = set()
    for reads, writes in steps:
        if any(byte in written for byte in reads):
            return False
        written |= {byte + distance for byte in writes}
    return True


def tightest(steps, low, high):
    """The largest distance up to which every distance is safe."""
    safe = [distance for distance in range(low, high + 1) if played(steps, distance)]
    below = list(itertools.takewhile(lambda one: one in set(safe), range(low, high + 1)))
    return below[-1]


def bytes_of(element, item):
    return range(element * item, (element + 1) * item)


@st.composite
def windows(draw):
    height, width = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    window = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    stride = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    dilation = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    same = draw(st.booleans())
    sizes = []
    for size, side, step, apart in zip((height, width), window, stride, dilation, strict=True):
        reach = (side - 1) * apart + 1
        sizes.append(-(-size // step) if same else max(0, (size + step - reach) // step))
    batch, depth = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    channels = draw(st.integers(1, 3))
    item = draw(st.sampled_from([1, 2]))
    image, output = (batch, height, width, depth), (batch, *sizes, channels)
    return Windows(image, output, window, stride, dilation, same, item)


def loops(one, channel_of):
    """The steps of a kernel: for each element of the output, the bytes of the input it reads."""
    batch, height, width, depth = one.image
    padding = [one._along(axis)[1] for axis in (0, 1)]
    for b, y, x, c in itertools.product(*map(range, one.output)):
        reads = []
        for row, column in itertools.product(range(one.window[0]), range(one.window[1])):
            in_y = y * one.stride[0] - padding[0] + one.dilation[0] * row
            in_x = x * one.stride[1] - padding[1] + one.dilation[1] * column
            if 0 <= in_y < height and 0 <= in_x < width:
                for channel in channel_of(c, depth):
                    element = ((b * height + in_y) * width + in_x) * depth + channel
                    reads += bytes_of(element, one.item)
        _, rows, columns, channels = one.output
        element = ((b * rows + y) * columns + x) * channels + c
        yield reads, bytes_of(element, one.item)
    assert batch


def holds(found, steps, one):
    sizes = [int(np.prod(shape)) * one.item for shape in (one.image, one.output)]
    low, high = -sizes[1] - 1, sizes[0] + 1
    assert min(max(found, low), high) == tightest(list(steps), low, high)


@given(windows())
@settings(deadline=None, max_examples=150)
def test_convolutions_may_go_as_far_as_their_loops_allow(one):
    if not one.is_consistent():
        return
    holds(one.all_channels(), loops(one, lambda _, depth: range(depth)), one)


@given(windows(), st.integers(1, 3))
@settings(deadline=None, max_examples=150)
def test_depthwise_likewise_with_every_multiplier(one, multiplier):
    output = (*one.output[:3], one.image[3] * multiplier)
    one = Windows(
        one.image, output, one.window, one.stride, one.dilation, one.same_padding, one.item
    )
    if not one.is_consistent():
        return
    holds(one.each_channel(multiplier), loops(one, lambda c, _: [c // multiplier]), one)


@given(st.integers(1, 9), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_elementwise_with_every_pair_of_sizes(count, before, after):
    steps = [(bytes_of(i, before), bytes_of(i, after)) for i in range(count)]
    low, high = -count * after - 1, count * before + 1
    assert min(elementwise(count, before, after), high) == tightest(steps, low, high)


SHAPES = [((4,), (4,)), ((1,), (4,)), ((3, 1), (3, 4)), ((4,), (3, 4)), ((2, 1, 2), (2, 3, 2))]


@pytest.mark.parametrize(("shape", "output"), SHAPES)
@pytest.mark.parametrize("item", [1, 2])
def test_broadcasting_reads_elements_again(shape, output, item):
    elements = np.broadcast_to(np.arange(np.prod(shape)).reshape(shape), output).ravel()
    steps = [(bytes_of(int(e), item), bytes_of(i, item)) for i, e in enumerate(elements)]
    low, high = -elements.size * item - 1, elements.size * item + 1
    assert min(broadcast(shape, output, item), high) == tightest(steps, low, high)


@given(st.tuples(*[st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 2))] * 3))
@settings(deadline=None, max_examples=100)
def test_padding_reads_where_it_does_not_pad(dimensions):
    shape, before, after = zip(*dimensions, strict=True)
    output = tuple(map(sum, dimensions))
    assert len(after) == len(shape)
    inside = np.full(output, -1)
    places = tuple(slice(b, b + s) for b, s in zip(before, shape, strict=True))
    inside[places] = np.arange(np.prod(shape)).reshape(shape)
    steps = [
        (bytes_of(int(e), 1) if e >= 0 else (), bytes_of(i, 1))
        for i, e in enumerate(inside.ravel())
    ]
    low, high = -inside.size - 1, int(np.prod(shape)) + 1
    assert min(padded(shape, output, before, 1), high) == tightest(steps, low, high)


def copied_apart(steps, low, high):
    """The largest distance at which no step's source meets its destination, or destroys another."""
    safe = low
    for distance in range(low, high + 1):
        apart = all(
            not set(reads) & {byte + distance for byte in writes}
            for reads, writes in steps
            if reads
        )
        if not apart or not played(steps, distance):
            break
        safe = distance
    return safe


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 4), st.data())
@settings(deadline=None, max_examples=100)
def test_joining_copies_row_by_row(parts, rows, data):
    position = data.draw(st.integers(0, len(parts) - 1))
    steps, written = [], 0
    for row, (place, size) in itertools.product(range(rows), enumerate(parts)):
        reads = range(row * size, (row + 1) * size) if place == position else ()
        steps.append((reads, range(written, written + size)))
        written += size
    # Below its own input, every copy lies apart; the rule is about that side.
    assert joined(parts, position, rows) == copied_apart(steps, -written - 1, 0)


@given(st.tuples(*[st.integers(1, 5)] * 4), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=200)
def test_enlarging_is_safe_with_every_option(sizes, corners, centers):
    height, width, rows, columns = sizes

    # GIVEN the kernel's own choice of the nearest pixel
    def nearest(place, size, count):
        scale = np.float32(size / count)
        if corners and count > 1:
            scale = np.float32((size - 1) / (count - 1))
        value = (place + (0.5 if centers else 0.0)) * scale
        found = int(np.floor(value + 0.5)) if corners else int(np.floor(value))
        return max(0, min(found, size - 1))

    steps = []
    for place, (y, x) in enumerate(itertools.product(range(rows), range(columns))):
        pixel = nearest(y, height, rows) * width + nearest(x, width, columns)
        steps.append((bytes_of(pixel, 2), bytes_of(place, 2)))
    # THEN at the distance of the rule, and below it, nothing is destroyed or copied onto itself
    found = enlarged((1, height, width, 2), (1, rows, columns, 2), 1)
    assert found <= copied_apart(steps, -2 * rows * columns - 1, 2 * height * width)


def test_a_single_step_may_be_anywhere():
    assert furthest(np.array([0]), np.array([4])) == NEVER
    assert elementwise(1, 4, 1) == NEVER


def test_shapes_that_do_not_go_together_have_no_distance():
    assert broadcast((3,), (4,), 1) is None
    assert broadcast((1, 4), (4,), 1) is None
    assert broadcast((0,), (0,), 1) is None
    assert padded((2, 2), (2, 3), (0, 2), 1) is None
    assert padded((2, 2), (2, 3), (0,), 1) is None
    assert padded((2, 2), (2, 3), (0, -1), 1) is None


def test_what_is_too_large_to_look_at_has_no_distance(monkeypatch):
    monkeypatch.setattr(distances, "MOST_STEPS", 10)
    assert broadcast((1,), (11,), 1) is None
    assert padded((10,), (11,), (1,), 1) is None
    assert joined([1, 1], 0, 6) is None
    assert enlarged((1, 2, 2, 1), (1, 4, 4, 1), 1) is None
    image = (1, 4, 4, 1)
    assert not Windows(image, image, (1, 1), (1, 1), (1, 1), True, 1).is_consistent()


@pytest.mark.parametrize(
    ("output", "stride"), [((1, 3, 4, 2), (1, 1)), ((2, 4, 4, 2), (1, 1)), ((1, 4, 4, 2), (0, 1))]
)
def test_shapes_that_are_not_what_the_options_give_are_noticed(output, stride):
    one = Windows((1, 4, 4, 1), output, (3, 3), stride, (1, 1), True, 1)
    assert not one.is_consistent()
