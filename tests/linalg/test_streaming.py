"""Blocks are read one ahead, in order, and no thread outlives its reader."""

import threading

import numpy as np
import pytest

from snugly.linalg.scratch import Scratch
from snugly.linalg.streaming import Block, stream

COUNT, HEIGHT, WIDTH = 7, 5, 3


def reading_threads():
    return [thread for thread in threading.enumerate() if thread.name == "snugly-scratch"]


@pytest.fixture
def scratch(tmp_path):
    with Scratch(COUNT * HEIGHT * WIDTH * 8, tmp_path) as scratch:
        for block, rows in zip(blocks(), contents(), strict=True):
            scratch.write(np.asfortranarray(rows), block.place)
        yield scratch


def blocks():
    item = HEIGHT * WIDTH * 8
    return [Block(item * number, 0, HEIGHT, WIDTH) for number in range(COUNT)]


def contents():
    return np.arange(COUNT * HEIGHT * WIDTH, dtype=float).reshape(COUNT, HEIGHT, WIDTH)


def buffers(count=2):
    return [np.empty(HEIGHT * WIDTH) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_block_comes_once_in_order_with_columns_contiguous(scratch, count):
    got = []
    for item, rows in stream(scratch, blocks(), lambda block: block, buffers(count)):
        assert rows.strides[0] == 8
        got.append((item.place, rows.copy()))
    assert [place for place, _ in got] == [block.place for block in blocks()]
    assert (np.array([rows for _, rows in got]) == contents()).all()
    assert reading_threads() == []


def test_an_empty_schedule_starts_no_thread(scratch):
    assert list(stream(scratch, [], lambda block: block, buffers())) == []
    assert reading_threads() == []


def test_a_smaller_block_uses_the_beginning_of_a_buffer(scratch):
    small = Block(0, 0, 2, 2)
    ((_, rows),) = [
        (item, rows.copy()) for item, rows in stream(scratch, [small], lambda b: b, buffers())
    ]
    assert (rows == np.array([[0, 6], [3, 9]])).all()


def test_whoever_stops_half_way_leaves_no_thread(scratch):
    blocks_by = stream(scratch, blocks(), lambda block: block, buffers())
    next(blocks_by)
    assert len(reading_threads()) == 1
    blocks_by.close()
    assert reading_threads() == []


def test_an_error_of_the_reading_thread_is_raised_where_the_block_is_waited_for(scratch):
    beyond = Block(1 << 30, 0, HEIGHT, WIDTH)
    got = []
    with pytest.raises(EOFError):
        got.extend(item for item, _ in stream(scratch, [*blocks(), beyond], lambda b: b, buffers()))
    assert got == blocks()
    assert reading_threads() == []
