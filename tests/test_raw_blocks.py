"""Blocks in files: whole, in both orders, at their place; a file that ends too early is told."""

import os

import numpy as np
import pytest

from snugly.raw_blocks import read_at, write_at


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_block_comes_back_from_its_place(tmp_path, order):
    block = np.asarray(np.arange(12.0).reshape(3, 4), order=order)
    file = os.open(tmp_path / "blocks", os.O_RDWR | os.O_CREAT)
    try:
        write_at(file, block, 100)
        found = np.zeros_like(block)
        read_at(file, found, 100)
        assert np.array_equal(found, block)
        assert os.fstat(file).st_size == 100 + block.nbytes
        with pytest.raises(EOFError, match="8 bytes too early"):
            read_at(file, found, 108)
    finally:
        os.close(file)


def test_what_the_system_takes_in_parts_arrives_whole(tmp_path, monkeypatch):
    # GIVEN a system that takes and gives seven bytes at a time
    write, read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda file, view, place: write(file, view[:7], place))
    monkeypatch.setattr(os, "preadv", lambda file, views, place: read(file, [views[0][:7]], place))
    file = os.open(tmp_path / "blocks", os.O_RDWR | os.O_CREAT)
    try:
        # WHEN a block is written and read, THEN all of it is there
        block, found = np.arange(5.0), np.zeros(5)
        write_at(file, block, 3)
        read_at(file, found, 3)
        assert np.array_equal(found, block)
    finally:
        os.close(file)
