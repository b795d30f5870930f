"""full_shuffle: every record in random order, with nothing in memory but where records begin.

A shuffle buffer mixes what is in it; to mix everything it must hold everything. A permutation of
the record's numbers needs no memory: `index_shuffle` computes where each number goes (a cipher on
the numbers, https://www.tensorflow.org/api_docs/python/tf/random/experimental/index_shuffle). Then
records are read where they lie, a block of them at a time, in the order of the file.
"""

from __future__ import annotations

import mmap
import os
import weakref
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from snugly.errors import InputError
from snugly.training.input_pipeline.tfrecords import HEADER, record_places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

BLOCK: Final = 1024
"""Records read at a time. Of a mapped file the system maps 16 pages around each that is touched
(fault_around_bytes, Linux), so that a block of small records holds 64 MiB of pages at most."""

_MOST_BLOCK_BYTES: Final = 16 * 2**20
_EPOCHS: Final = 2**31 - 1


class Source(Protocol):
    """Records by number."""

    count: int
    block: int

    def read(self, numbers: NDArray[np.int64]) -> Any:
        """The records with these numbers, in this order."""
        ...

    def spec(self) -> Any:
        """What one of them looks like."""
        ...


def full_shuffle(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | NDArray[Any],
    *,
    seed: int | None = None,
    reshuffle_each_iteration: bool = True,
) -> Any:
    """A dataset of all records in a random order of all of them, each exactly once in an epoch.

    Args:
        source: TFRecord files (uncompressed), one `.npy` file, or an array, whose rows are the
            records. Files must not change while they are read.
        seed: The same seed gives the same orders; without it they are drawn anew.
        reshuffle_each_iteration: Another order in every epoch.

    In memory: 8 bytes a record of TFRecord files, nothing for `.npy` files and arrays, and one
    block of records. Checksums of records are not verified.

    Raises:
        InputError: There is no such file, it is compressed or cut off, or there are no records.
    """
    import tensorflow as tf

    records = _open(source)
    if records.count == 0:
        raise InputError("there are no records to shuffle", code="SNG559", hint="is a file empty?")
    index_shuffle: Any = getattr(tf.random, "experimental").index_shuffle  # noqa: B009 - untyped
    count, spec = records.count, records.spec()
    seeds = tf.data.Dataset.random(
        seed=seed, rerandomize_each_iteration=reshuffle_each_iteration
    ).take(1)

    def permuted(epoch: Any) -> Any:
        key = tf.stack([epoch % _EPOCHS, epoch // _EPOCHS])

        def read(numbers: Any) -> Any:
            last = tf.constant(count - 1, tf.int64)
            shuffled = index_shuffle(numbers, key, last)
            block = tf.numpy_function(records.read, [shuffled], spec.dtype, stateful=True)
            return tf.ensure_shape(block, [None, *spec.shape])

        numbers = tf.data.Dataset.range(count).batch(records.block)
        return numbers.map(read).prefetch(1).unbatch()

    dataset = seeds.flat_map(permuted)
    return dataset.apply(tf.data.experimental.assert_cardinality(count))


def _open(source: Any) -> Source:
    if isinstance(source, np.ndarray):
        if source.ndim == 0 or source.dtype.hasobject:
            raise InputError(
                "an array to shuffle has rows of numbers", code="SNG559", hint="give shape (n, …)"
            )
        return _Rows(source)
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise InputError(
            "full_shuffle takes TFRecord files, a .npy file or an array",
            code="SNG559",
            hint='give full_shuffle(["train.tfrecord"])',
        )
    files = [Path(path) for path in paths]
    for file in files:
        if not file.is_file():
            raise InputError(
                f"there is no file {str(file)!r}", code="SNG559", hint="check the path"
            )
    if files[0].suffix == ".npy":
        if len(files) > 1:
            raise InputError(
                "several .npy files cannot be shuffled together", code="SNG559", hint="give one"
            )
        return _Rows(_mapped(files[0]))
    return _Records(files)


def _mapped(file: Path) -> NDArray[Any]:
    try:
        found = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(
            f"{str(file)!r} is no .npy file of numbers: {error}", code="SNG559", hint="np.save it"
        ) from None
    if found.ndim == 0:
        raise InputError(f"{str(file)!r} has no rows", code="SNG559", hint="save shape (n, …)")
    return found


class _Rows:
    """Rows of an array, in memory or mapped from a file."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self.rows = rows
        self.count = len(rows)
        width = max(rows[:1].nbytes, 1)
        self.block = max(1, min(BLOCK, _MOST_BLOCK_BYTES // width))

    def spec(self) -> Any:
        import tensorflow as tf

        return tf.TensorSpec(self.rows.shape[1:], tf.as_dtype(self.rows.dtype))

    def read(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        block = self.rows[numbers]
        mapped = getattr(self.rows, "_mmap", None)
        if mapped is not None:
            # Pages that were touched would stay in the process; the system's cache has them anyway.
            mapped.madvise(mmap.MADV_DONTNEED)
            block = np.asarray(block)
        return block


class _Records:
    """Records of TFRecord files: where each begins is all that is kept."""

    def __init__(self, files: Sequence[Path]) -> None:
        places, ends, longest = array("q"), [], 0
        for file in files:
            for place, length in record_places(file):
                places.append(place)
                longest = max(longest, length)
            ends.append(len(places))
        self.places = np.frombuffer(places, np.int64) if places else np.zeros(0, np.int64)
        self.ends = np.asarray(ends)
        self.count = len(places)
        self.block = max(1, min(BLOCK, _MOST_BLOCK_BYTES // max(longest, 1)))
        self.open = [os.open(file, os.O_RDONLY) for file in files]
        weakref.finalize(self, _close, self.open)

    def spec(self) -> Any:
        import tensorflow as tf

        return tf.TensorSpec((), tf.string)

    def read(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        found = np.empty(len(numbers), object)
        # In the order of the files, so that what lies together is read together.
        for position in np.argsort(numbers):
            number = numbers[position]
            file = self.open[int(np.searchsorted(self.ends, number, side="right"))]
            place = int(self.places[number])
            header = os.pread(file, HEADER.size, place - HEADER.size)
            found[position] = os.pread(file, HEADER.unpack(header)[0], place)
        return found


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
