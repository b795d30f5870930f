"""The allocator against TensorFlow's own: every event of a traced run, to the byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from snugly.allocators import DEATH, BfcAllocator, replay

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow"),
]

MIB = 1 << 20


@pytest.fixture(scope="module", params=[("train", 65536), ("sizes", 500)], ids=lambda p: p[0])
def traced(request: pytest.FixtureRequest) -> tuple[int, dict[str, Any]]:
    """The allocator's limit in bytes, and what the traced program printed."""
    program, mebibytes = request.param
    finished = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("traced_program.py")), program],
        env={**os.environ, "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(mebibytes)},
        capture_output=True,
        check=True,
        text=True,
        timeout=300,
    )
    return mebibytes * MIB, json.loads(finished.stdout)  # with NaN where nothing is unused


def test_every_event_agrees_to_the_byte(traced: tuple[int, dict[str, Any]]) -> None:
    # GIVEN a run traced from the first byte on, in an order that its own sums confirm
    limit, trace = traced
    events: list[dict[str, Any]] = trace["events"]
    in_use = 0
    for event in events:
        in_use += event["allocation_bytes"] if event["birth"] else -event["allocation_bytes"]
        assert event["bytes_allocated"] == in_use
    # AND an allocator whose regions lie where the run's did: their first chunks are given at once
    address = 0
    allocator = BfcAllocator(limit, place_region=lambda _size, _regions: address)
    for event in events:
        # WHEN it gets the same requests
        address = event["addr"]
        if event["birth"]:
            # THEN each gets the same chunk, of the same bytes
            assert allocator.allocate(event["requested_bytes"]) == address
            assert allocator.chunk_bytes(address) == event["allocation_bytes"]
        else:
            allocator.free(address)
        # AND the counters agree
        assert allocator.bytes_in_use == event["bytes_allocated"]
        assert allocator.peak_bytes_in_use == event["peak_bytes_in_use"]
        # AND so do, to the six digits of "fragmentation", the bytes held and the largest free chunk
        unused = allocator.reserved - allocator.bytes_in_use
        if unused:
            fragmentation = (unused - allocator.largest_free) / unused
            assert fragmentation == pytest.approx(event["fragmentation"], rel=1e-5)
    assert allocator.peak_bytes_in_use == trace["peak"]
    assert allocator.reserved <= limit


def test_replay_reports_the_peak_of_the_run(traced: tuple[int, dict[str, Any]]) -> None:
    # GIVEN the same run as births and deaths, keyed by address
    limit, trace = traced
    events = [(e["addr"], e["requested_bytes"] if e["birth"] else DEATH) for e in trace["events"]]
    placed = iter(_first_addresses(limit, trace["events"]))
    # WHEN it is replayed
    usage = replay(events, BfcAllocator(limit, place_region=lambda _size, _regions: next(placed)))
    # THEN the peak is TensorFlow's
    assert usage.peak == trace["peak"]
    assert usage.failed_index is None


def _first_addresses(limit: int, events: list[dict[str, Any]]) -> list[int]:
    """Where each region of a traced run began."""
    address = 0
    allocator = BfcAllocator(limit, place_region=lambda _size, _regions: address)
    for event in events:
        address = event["addr"]
        if event["birth"]:
            allocator.allocate(event["requested_bytes"])
        else:
            allocator.free(address)
    return [start for start, _ in allocator.regions]
