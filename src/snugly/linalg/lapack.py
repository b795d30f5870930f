"""The LAPACK that is already in the process: NumPy's own, called on views, in place.

NumPy's public functions copy the matrix; SciPy's do not have to, but importing `scipy.linalg`
takes 33 MiB and a second BLAS with buffers and threads of its own (measured, SciPy 1.17), which
is more than some budgets. NumPy's extension module links a BLAS and LAPACK, and a symbol looked up
in that module is found in the libraries it links: nothing is loaded. Where NumPy was built
differently (Apple's Accelerate, Windows), the routines come from SciPy after all.

All matrices here are views whose columns are contiguous, as LAPACK wants them. A matrix stored
by rows is passed as its transpose, which has the same determinant.
"""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LETTERS: Final = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_ROUTINES: Final = ("getrf", "getri", "trsm", "gemm", "laswp")
# How the symbols are spelled: SciPy-OpenBLAS wheels (NumPy 2, 1.26), other ILP64 and LP64 builds.
_SPELLINGS: Final = (
    ("scipy_{}_64_", ctypes.c_int64),
    ("{}_64_", ctypes.c_int64),
    ("scipy_{}_", ctypes.c_int32),
    ("{}_", ctypes.c_int32),
)


@dataclass(frozen=True, slots=True)
class Lapack:
    """The routines of one element type. Every method works in place and leaves the GIL free."""

    dtype: np.dtype[Any]
    integer: type[ctypes.c_int64 | ctypes.c_int32]
    routines: dict[str, Callable[..., None]]

    def factor(self, matrix: np.ndarray) -> np.ndarray:
        """LU with partial pivoting, in place; gives the row each row was swapped with, from 0."""
        rows, columns = matrix.shape
        pivots = np.zeros(min(rows, columns), _numpy_integer(self.integer))
        info = self.integer()
        self._call(
            "getrf",
            self._size(rows),
            self._size(columns),
            _address(matrix),
            self._leading(matrix),
            _address(pivots),
            ctypes.byref(info),
        )
        if info.value < 0:
            raise AssertionError(f"getrf refused its argument {-info.value}")
        pivots -= 1
        return pivots

    def invert_factored(self, matrix: np.ndarray, pivots: np.ndarray, workspace: np.ndarray) -> int:
        """The inverse from the LU factors, in place; gives 0, or k where pivot k is zero."""
        fortran = pivots.astype(_numpy_integer(self.integer)) + 1
        info = self.integer()
        self._call(
            "getri",
            self._size(len(matrix)),
            _address(matrix),
            self._leading(matrix),
            _address(fortran),
            _address(workspace),
            self._size(workspace.size),
            ctypes.byref(info),
        )
        return int(info.value)

    def solve_triangular(  # noqa: PLR0913 - BLAS's own switches
        self,
        triangle: np.ndarray,
        right: np.ndarray,
        *,
        lower: bool,
        transposed: bool = False,
        unit: bool = False,
        from_right: bool = False,
    ) -> None:
        """`right` becomes op(triangle)⁻¹ · right, or right · op(triangle)⁻¹ with `from_right`."""
        rows, columns = right.shape
        if rows == 0 or columns == 0:
            return
        self._call(
            "trsm",
            b"R" if from_right else b"L",
            b"L" if lower else b"U",
            b"T" if transposed else b"N",
            b"U" if unit else b"N",
            self._size(rows),
            self._size(columns),
            self._scalar(1),
            _address(triangle),
            self._leading(triangle),
            _address(right),
            self._leading(right),
        )

    def subtract_product(
        self, target: np.ndarray, left: np.ndarray, right: np.ndarray, *, transposed: bool = False
    ) -> None:
        """`target` becomes target - op(left) · right, where op may transpose."""
        rows, columns = target.shape
        if 0 in (rows, columns, len(right)):
            return
        self._call(
            "gemm",
            b"T" if transposed else b"N",
            b"N",
            self._size(rows),
            self._size(columns),
            self._size(len(right)),
            self._scalar(-1),
            _address(left),
            self._leading(left),
            _address(right),
            self._leading(right),
            self._scalar(1),
            _address(target),
            self._leading(target),
        )

    def swap_rows(self, matrix: np.ndarray, pivots: np.ndarray, *, backwards: bool = False) -> None:
        """Repeat the swaps of a factorisation on another matrix, or take them back."""
        fortran = pivots.astype(_numpy_integer(self.integer)) + 1
        self._call(
            "laswp",
            self._size(matrix.shape[1]),
            _address(matrix),
            self._leading(matrix),
            self._size(1),
            self._size(len(fortran)),
            _address(fortran),
            self._size(-1 if backwards else 1),
        )

    def _call(self, routine: str, *arguments: Any) -> None:
        self.routines[routine](*arguments)

    def _size(self, value: int) -> Any:
        return ctypes.byref(self.integer(value))

    def _scalar(self, value: int) -> ctypes.c_void_p:
        return _address(_SCALARS[self.dtype.name, value])

    def _leading(self, matrix: np.ndarray) -> Any:
        item, rows = matrix.itemsize, matrix.shape[0]
        if rows > 1 and matrix.strides[0] != item:
            raise AssertionError("the columns of a matrix for LAPACK are contiguous")
        stride = matrix.strides[1] // item if matrix.shape[1] > 1 else rows
        return self._size(max(stride, rows, 1))


_SCALARS: Final = {(name, value): np.array([value], name) for name in _LETTERS for value in (1, -1)}


@cache
def lapack_for(dtype: np.dtype[Any]) -> Lapack:
    """The routines for one of the four element types that LAPACK knows."""
    letter = _LETTERS[dtype.name]
    names = [letter + routine for routine in _ROUTINES]
    found = _from_numpy(names) or _from_scipy(names)
    if found is None:
        raise MissingDependencyError(
            "no LAPACK was found: this build of NumPy hides its own, and SciPy is not installed",
            hint="pip install scipy",
        )
    integer, functions = found
    return Lapack(dtype, integer, dict(zip(_ROUTINES, functions, strict=True)))


def _from_numpy(names: list[str]) -> tuple[type, list[Any]] | None:
    try:
        from numpy.linalg import _umath_linalg

        library = ctypes.CDLL(str(_umath_linalg.__file__))
    except (ImportError, AttributeError, OSError):
        return None
    for spelling, integer in _SPELLINGS:
        try:
            functions = [getattr(library, spelling.format(name)) for name in names]
        except AttributeError:
            continue
        for function in functions:
            function.restype = None
        return integer, functions
    return None


@contextlib.contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Let NumPy's BLAS use so many threads meanwhile, where it is one that can be told (OpenBLAS).

    Workers of a cluster begin with one, whatever their share of the machine is.
    """
    switches = _thread_switches()
    before = switches[0]() if switches is not None else count
    if switches is None or before == count:
        yield
        return
    switches[1](count)
    try:
        yield
    finally:
        switches[1](before)


@cache
def _thread_switches() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    try:
        from numpy.linalg import _umath_linalg

        library = ctypes.CDLL(str(_umath_linalg.__file__))
    except (ImportError, AttributeError, OSError):
        return None
    for spelling in (
        "scipy_openblas_{}_num_threads64_",
        "scipy_openblas_{}_num_threads",
        "openblas_{}_num_threads64_",
        "openblas_{}_num_threads",
    ):
        try:
            get, put = (getattr(library, spelling.format(word)) for word in ("get", "set"))
        except AttributeError:
            continue
        get.restype, put.restype = ctypes.c_int, None
        return get, put
    return None


def _from_scipy(names: list[str]) -> tuple[type, list[Any]] | None:
    try:
        blas, lapack = (import_module(f"scipy.linalg.cython_{name}") for name in ("blas", "lapack"))
    except ImportError:
        return None
    signatures = {**blas.__pyx_capi__, **lapack.__pyx_capi__}
    prototype = ctypes.CFUNCTYPE(None)
    return ctypes.c_int32, [prototype(_pointer_in(signatures[name])) for name in names]


def _pointer_in(capsule: Any) -> int:
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer_of(capsule, name_of(capsule))


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _numpy_integer(integer: type) -> type[np.signedinteger[Any]]:
    return np.int64 if integer is ctypes.c_int64 else np.int32
