"""A folder that this process and all workers see, and matrices brought to where they read them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from snugly.engines.folders import require_folder
from snugly.errors import InputError
from snugly.linalg.files import NpyFile, open_source
from snugly.linalg.sources import ArraySource, Source, checked_shape, working_dtype
from snugly.units import Size

if TYPE_CHECKING:
    from snugly.engines.engine import Engine

_SENT: Final = 1 << 20
"""Arrays up to so many bytes travel with their task; larger ones are written where workers see."""
_PIECE: Final = 16 << 20


class SharedFolder:
    """A folder for one call, made and checked when it is first needed, gone afterwards."""

    def __init__(self, engine: Engine, scratch: str | os.PathLike[str] | None) -> None:
        self.engine = engine
        self._parent = Path(scratch if scratch is not None else tempfile.gettempdir()).absolute()
        self._path: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)

    @property
    def path(self) -> Path:
        """The folder, seen by all workers.

        Raises:
            InputError: It cannot be made here, or a worker does not see it.
        """
        if self._path is None:
            try:
                self._path = Path(tempfile.mkdtemp(prefix="snugly-scratch-", dir=self._parent))
            except OSError as error:
                raise InputError(
                    f"no folder can be made in {self._parent}: {error.strerror}", code="SNG505"
                ) from error
            self._check()
        return self._path

    def new_shelf(self, needed: int) -> str:
        """A folder in it for one factorisation, with room for so many bytes."""
        self.require(needed)
        place = self.path / uuid.uuid4().hex
        place.mkdir()
        return str(place)

    def require(self, needed: int) -> None:
        """See that there is room for so many bytes."""
        free = shutil.disk_usage(self.path).free
        if free < needed:
            raise InputError(
                f"the scratch files need {Size(needed)} in {self._parent}, which has {Size(free)}",
                code="SNG505",
                hint="name a folder that all workers see: `slogdet(a, scratch=FOLDER, engine=…)`",
            )

    def remove(self, place: str) -> None:
        """Remove a folder in it, with all that lies there."""
        shutil.rmtree(place, ignore_errors=True)

    def _check(self) -> None:
        assert self._path is not None
        self.engine.workers()
        hint = (
            "name a folder on a file system that all workers share:"
            " `slogdet(a, scratch=FOLDER, engine=…)`"
        )
        require_folder(self.engine, self._path, hint)


def see_file(path: str) -> str:
    """In a worker: what is wrong with a file or Zarr array, if anything."""
    try:
        source = open_source(path)
    except InputError as error:
        return str(error)
    return f"{source.shape} {source.stored}"


def source_for_workers(a: Any, folder: SharedFolder) -> Source:
    """A source that workers can read for themselves.

    Raises:
        InputError: A worker does not see the file, or sees another one.
    """
    if isinstance(a, (str, os.PathLike)):
        source = open_source(Path(a).absolute())
        expected = f"{source.shape} {source.stored}"
        folder.engine.workers()
        for name, found in folder.engine.everywhere(see_file, str(Path(a).absolute())).items():
            if found != expected:
                raise InputError(
                    f"{name} does not see {source.title} as it is here: {found}",
                    code="SNG583",
                    hint="put the matrix on a file system that all workers share",
                )
        return source
    if type(a).__module__.startswith("dask.array"):
        return _stored(a, folder)
    source = open_source(a)
    array = source.array
    if array is not None and array.nbytes <= _SENT:
        return ArraySource(np.array(array))
    return _written(source, folder)


def _written(source: Source, folder: SharedFolder) -> Source:
    """A matrix of this process, written where workers read it, in the type that is computed in."""
    folder.require(source.count * source.size**2 * source.working.itemsize)
    path = folder.path / "matrix.npy"
    size = source.size
    step = max(1, _PIECE // max(1, size * source.working.itemsize))
    with _telling(folder), path.open("wb") as file:
        _write_header(file, source.shape, source.working)
        # What is a column of the source becomes a row of the file, which reads as a column again.
        piece = np.empty((min(step, size), size), source.working)
        for index in range(source.count):
            for start in range(0, size, step):
                part = piece[: min(step, size - start)]
                source.read(index, start, start + len(part), part.T)
                part.tofile(file)
    return _Renamed(NpyFile(path), source.title, by_rows=source.by_rows)


def _stored(array: Any, folder: SharedFolder) -> Source:
    """A Dask array, computed by its workers into a file they all read: each chunk once."""
    from snugly.engines.arrays import store

    shape = array.shape
    if any(isinstance(extent, float) for extent in shape):
        raise InputError(
            "the Dask array does not know its own shape",
            code="SNG501",
            hint="call `a.compute_chunk_sizes()` first",
        )
    checked_shape(shape, "the Dask array")
    dtype = working_dtype(array.dtype, "the Dask array")
    folder.require(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
    path = folder.path / "matrix.npy"
    with _telling(folder), path.open("wb") as file:
        _write_header(file, shape, dtype)
        place = file.tell()
        file.truncate(place + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
    store(folder.engine, array.astype(dtype), str(path), place)
    return _Renamed(NpyFile(path), "the Dask array")


class _Renamed(NpyFile):
    """A file that stands for something the user knows under another name."""

    def __init__(self, file: NpyFile, title: str, *, by_rows: bool = True) -> None:
        vars(self).update(vars(file))
        self.title = title
        self._by_rows = by_rows

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (vars(self),)


def _restored(state: dict[str, Any]) -> _Renamed:
    found = _Renamed.__new__(_Renamed)
    vars(found).update(state)
    return found


def _write_header(file: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    described = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": tuple(int(extent) for extent in shape),
    }
    np.lib.format.write_array_header_2_0(file, described)


@contextlib.contextmanager
def _telling(folder: SharedFolder) -> Any:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"the matrix cannot be written to {folder.path}: {error.strerror}", code="SNG505"
        ) from error
