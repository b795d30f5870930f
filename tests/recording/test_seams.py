"""Between two windows something may happen unseen; the allocator's figures say how much."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.recording.histories import Allocator, stretch_of

from snugly.recording.events import buffers_of, concatenate
from snugly.recording.seams import LONGEST, bridge, lives_of


def windows_of(*works):
    """Every second work is seen; what comes in between is not."""
    allocator, windows = Allocator(), []
    for number, work in enumerate(works):
        work(allocator)
        taken = allocator.take()
        if number % 2 == 0:
            windows.append(stretch_of(taken))
    return windows


def curve(stretch):
    """Chunk bytes alive after each event, by the lives that were derived."""
    buffers = buffers_of(stretch)
    lives = lives_of(stretch, buffers)
    at = np.where(buffers.birth >= 0, buffers.birth, buffers.death)
    change = np.zeros(len(stretch) + 2, np.int64)
    np.add.at(change, lives.births, stretch.allocated[at])
    np.subtract.at(change, lives.deaths, stretch.allocated[at])
    for moment, size in lives.unseen:
        change[moment] += size
    return np.cumsum(change)[1 : len(stretch) + 1] + _from_before(stretch, buffers, lives)


def _from_before(stretch, buffers, lives):
    unborn = (buffers.birth < 0) & (lives.births == 0)
    return stretch.before - int(stretch.allocated[buffers.death[unborn]].sum())


def test_a_buffer_that_was_born_unseen_is_there_from_the_seam_on():
    kept = {}
    first, second = windows_of(
        lambda a: a.allocate(1000),
        lambda a: kept.update(x=a.allocate(2000)),
        lambda a: (a.allocate(300), a.free(kept["x"])),
    )
    joined = concatenate([first, second], are_seams=True)
    assert joined.seams == (1,)
    assert curve(joined).tolist() == joined.in_use.tolist()


def test_a_pipelines_buffer_that_was_freed_unseen_is_gone_from_the_seam_on():
    kept = {}
    first, second = windows_of(
        lambda a: (
            a.allocate(1000),
            kept.update(x=a.allocate(5000, thread="tf_data_private/1")),
        ),
        lambda a: a.free(kept["x"]),
        lambda a: a.allocate(300, "elsewhere"),
    )
    # GIVEN an address that is not given out again, so that the figure alone tells
    second = second.part(0, len(second))
    joined = concatenate([first, second], are_seams=True)
    assert curve(joined)[-1] == joined.in_use[-1]


def test_what_was_born_unseen_and_never_freed_is_unknown_but_counted():
    first, second = windows_of(
        lambda a: a.allocate(1000), lambda a: a.allocate(2000), lambda a: a.allocate(300)
    )
    joined = concatenate([first, second], are_seams=True)
    lives = lives_of(joined, buffers_of(joined))
    assert lives.unseen == ((2, 2048),)
    assert curve(joined).tolist() == joined.in_use.tolist()


def test_an_address_that_is_given_out_again_was_freed_at_the_seam():
    kept = {}
    first, second = windows_of(
        lambda a: (kept.update(x=a.allocate(1000)), a.allocate(1000)),
        lambda a: a.free(kept["x"]),
        lambda a: (a.allocate(500), a.allocate(700)),
    )
    joined = concatenate([first, second], are_seams=True)
    assert curve(joined).tolist() == joined.in_use.tolist()


def test_windows_far_apart_stay_apart():
    first, second = windows_of(
        lambda a: a.allocate(1000),
        lambda a: setattr(a, "time", a.time + LONGEST + 1),
        lambda a: a.allocate(300),
    )
    assert [len(part) for part in bridge([first, second])] == [1, 1]


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=3, max_size=7))
def test_after_the_last_seam_nothing_is_missing(program):
    # GIVEN random work, every second piece of it unseen; only pipelines free unseen
    live: list[int] = []

    def work(choices, *, seen):
        def run(allocator):
            for choice in choices:
                if choice < 4 and live and seen:
                    allocator.free(live.pop(choice % len(live)))
                else:
                    live.append(allocator.allocate(100 * (choice + 1)))

        return run

    pieces = [work(choices, seen=n % 2 == 0) for n, choices in enumerate(program)]
    windows = [window for window in windows_of(*pieces) if len(window)]
    if not windows:
        return
    joined = concatenate(windows, are_seams=True)
    # THEN the buffers that were derived add up to what the allocator says, at every event
    assert curve(joined).tolist() == joined.in_use.tolist()
