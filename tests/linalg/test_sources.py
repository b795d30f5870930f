"""Whatever a matrix comes in, its columns come out: every storage order, type and kind of file."""

import mmap
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.linalg.matrices import DTYPES, random_matrix

from snugly.errors import InputError
from snugly.linalg import slogdet
from snugly.linalg.files import open_source
from snugly.linalg.sources import PIECE, ArraySource

SIZE = 11


def content(source, index=0, width=4):
    """The matrix as the user wrote it, read in blocks of columns."""
    size = source.size
    got = np.empty((size, size), source.working, order="F")
    for start in range(0, size, width):
        stop = min(start + width, size)
        source.read(index, start, stop, got[:, start:stop])
    return got.T if source.by_rows else got


def save_zarr(path, array, **keywords):
    import zarr

    stored = zarr.open(str(path), mode="w", shape=array.shape, dtype=array.dtype, **keywords)
    stored[...] = array
    return path


def stored_in_every_way(array, folder):
    """The same numbers behind every kind of source."""
    rows, columns = array.shape
    frame = np.zeros((2 * rows, 3 * columns), array.dtype)
    frame[::2, ::3] = array
    path = folder / "a.npy"
    np.save(path, array)
    np.save(folder / "f.npy", np.asfortranarray(array))
    yield "C order", ArraySource(np.ascontiguousarray(array))
    yield "Fortran order", ArraySource(np.asfortranarray(array))
    yield "rows backwards", ArraySource(array[::-1].copy()[::-1])
    yield "columns backwards", ArraySource(array[:, ::-1].copy()[:, ::-1])
    yield "both backwards", ArraySource(np.asfortranarray(array[::-1, ::-1])[::-1, ::-1])
    yield "with gaps", ArraySource(frame[::2, ::3])
    yield "other byte order", ArraySource(array.astype(array.dtype.newbyteorder()))
    for mode in ("r", "r+", "c"):
        yield f"memory map {mode}", ArraySource(np.load(path, mmap_mode=mode))
    yield "memory map of columns", ArraySource(np.load(folder / "f.npy", mmap_mode="r"))
    yield "file", open_source(path)
    yield "file of columns", open_source(str(folder / "f.npy"))
    yield "Zarr", open_source(save_zarr(folder / "a.zarr", array, chunks=(3, 5)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_kind_of_storage_gives_the_same_matrix(tmp_path, dtype):
    array = random_matrix(SIZE, dtype)
    for name, source in stored_in_every_way(array, tmp_path):
        assert (content(source) == array).all(), name
        assert source.working == np.dtype(dtype), name
        assert (source.size, source.batch, source.count) == (SIZE, (), 1), name


def test_what_is_not_finite_is_named_in_the_users_own_indices(tmp_path):
    for row, column in ((0, 0), (2, 7), (SIZE - 1, 3)):
        array = random_matrix(SIZE)
        array[row, column] = np.nan
        for name, source in stored_in_every_way(array, tmp_path):
            inner, outer = (column, row) if source.by_rows else (row, column)
            assert source.position(0, inner, outer) == (row, column), name


def test_a_stack_is_counted_in_the_order_of_its_indices(tmp_path):
    array = random_matrix(5, batch=(2, 3))
    np.save(tmp_path / "a.npy", array)
    sources = [
        ArraySource(array),
        ArraySource(array.swapaxes(-1, -2).copy().swapaxes(-1, -2)),
        ArraySource(array[:, ::-1].copy()[:, ::-1]),
        open_source(tmp_path / "a.npy"),
        open_source(save_zarr(tmp_path / "a.zarr", array, chunks=(1, 2, 3, 5))),
    ]
    for source in sources:
        assert (source.batch, source.count) == ((2, 3), 6)
        assert (content(source, 4) == array[1, 1]).all()
        inner, outer = (1, 3) if source.by_rows else (3, 1)
        assert source.position(4, inner, outer) == (1, 1, 3, 1)


@pytest.mark.parametrize("kind", ["map", "file", "zarr"])
def test_more_than_one_piece_is_read_piece_by_piece(tmp_path, kind):
    array = random_matrix(700)
    assert array.nbytes > 3 * PIECE
    path = tmp_path / f"a.{'zarr' if kind == 'zarr' else 'npy'}"
    if kind == "zarr":
        save_zarr(path, array, chunks=(300, 100))
    else:
        np.save(path, array)
    source = open_source(np.load(path, mmap_mode="r") if kind == "map" else path)
    assert (content(source, width=699) == array).all()


@pytest.mark.parametrize(
    ("stored", "computed"),
    [
        (np.float16, "float32"),
        (ml_dtypes.bfloat16, "float32"),
        (np.float32, "float32"),
        (">f4", "float32"),
        (">f8", "float64"),
        (">c8", "complex64"),
        (np.complex128, "complex128"),
    ],
)
def test_narrow_types_are_computed_in_float32_and_none_in_less_than_itself(stored, computed):
    array = random_matrix(SIZE).astype(stored)
    source = ArraySource(array)
    assert source.working == np.dtype(computed)
    assert (content(source) == array.astype(computed)).all()


def test_a_wider_type_can_be_asked_for_and_leaves_the_source_as_it_is():
    source = ArraySource(random_matrix(SIZE, "float32"))
    wider = source.computed_in(np.dtype("float64"))
    assert content(wider).dtype == np.float64
    assert source.working == np.float32


@pytest.mark.parametrize(
    "dtype", ["int32", "uint8", "bool", "U3", "S3", "object", "M8[s]", "V2", "longdouble"]
)
def test_other_types_are_refused_with_the_cast_to_write(dtype):
    with pytest.raises(InputError) as caught:
        slogdet(np.zeros((2, 2), dtype))
    assert caught.value.code == "SNG502"
    assert "tf.cast(a, tf.float64)" in caught.value.hint


@pytest.mark.parametrize("a", [[[1, 2], [3, 4]], [["a", "b"], ["c", "d"]], [[None]]])
def test_lists_of_whole_numbers_and_text_are_refused(a):
    with pytest.raises(InputError) as caught:
        slogdet(a)
    assert caught.value.code == "SNG502"


def test_a_list_whose_rows_differ_in_length_is_refused():
    with pytest.raises(InputError):
        slogdet([[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (3, 2), (5, 2, 3), (0, 3), (2, 0)])
def test_what_is_not_square_is_refused_with_its_shape(shape):
    with pytest.raises(InputError) as caught:
        slogdet(np.zeros(shape))
    assert caught.value.code == "SNG501"
    assert (str(shape) if len(shape) < 2 else f"{shape[-2]} rows") in caught.value.message


def test_subclasses_of_arrays_are_taken_as_arrays():
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    plain = slogdet(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        subclass = np.matrix(values)
    assert slogdet(subclass).method == plain.method
    assert tuple(slogdet(subclass)) == tuple(plain)


# ------------------------------------------------------------------------------- memory maps


def test_a_file_behind_a_memory_map_is_never_written(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, random_matrix(40))
    before = path.read_bytes()
    for mode in ("r", "r+", "c"):
        mapped = np.load(path, mmap_mode=mode)
        expected = np.linalg.slogdet(mapped)
        assert slogdet(mapped, overwrite=True).logabs == pytest.approx(expected[1])
        del mapped
        assert path.read_bytes() == before


def test_what_was_changed_in_a_copy_on_write_map_is_kept(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, random_matrix(400))
    mapped = np.load(path, mmap_mode="c")
    mapped[:] = random_matrix(400, seed=1)
    slogdet(mapped)
    slogdet(np.asarray(mapped)[::-1])
    assert (mapped == random_matrix(400, seed=1)).all()


@pytest.mark.parametrize("kind", ["private", "copy-on-write"])
def test_an_array_in_memory_that_only_this_process_maps_is_kept(tmp_path, kind):
    size = 300
    path = tmp_path / "zeros"
    path.write_bytes(bytes(size * size * 8))
    with path.open("r+b") as file:
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        mapped = (
            mmap.mmap(-1, size * size * 8, flags=private)
            if kind == "private"
            else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        )
    array = np.ndarray((size, size), np.float64, buffer=mapped)
    array[:] = random_matrix(size)
    expected = np.linalg.slogdet(array)
    got = slogdet(array)
    assert (array == random_matrix(size)).all()
    assert got.sign == expected[0]
    assert got.logabs == pytest.approx(expected[1])


def test_pages_of_a_map_are_given_back_once_read(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, random_matrix(1500))
    source = ArraySource(np.load(path, mmap_mode="r"))
    content(source, width=1500)
    # The kernel maps up to 2 MiB around a page that is touched.
    assert _resident(path) <= 4 * PIECE


def _resident(path):
    """Bytes of a file that are in this process's page tables."""
    lines = iter(Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines())
    total = 0
    for line in lines:
        if line.endswith(str(path)):
            total += next(int(x.split()[1]) for x in lines if x.startswith("Rss:")) * 1024
    return total


def test_a_resident_page_would_be_seen(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, random_matrix(1500))
    mapped = np.load(path, mmap_mode="r")
    mapped.sum()
    assert _resident(path) >= 16 * PIECE
