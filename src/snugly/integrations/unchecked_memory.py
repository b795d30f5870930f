"""Memory for code of TensorFlow that does not look whether it got it, while a guard holds.

Found with TensorFlow 2.21 by refusing memory to its operations: what is allocated for an operation
(`OpKernelContext::allocate_…`, which makes tensors with attributes) is checked and raises. Scratch
memory of kernels (Eigen, oneDNN, XLA), C++ containers, text, stacks of threads, and tensors that
are made without attributes (batches of input pipelines, …) are not, and a refusal is a crash. So
calls of that kind, from TensorFlow's own libraries alone, are given what they ask for, up to as
much again as the guard's limit and nine tenths of what the machine has; the watcher then stops what
runs. The layout of a tensor is checked against what TensorFlow says of one.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snugly.guarding.library_calls import Diversion, find_slots, mapped_libraries
from snugly.guarding.native_rescue import NativeRescue
from snugly.integrations.tensor_allocator import ProcessMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.guarding.enclosure import Enclosure
    from snugly.guarding.native_rescue import Failure

_FRAMEWORK: Final = "libtensorflow_framework.so.2"
_LIBRARIES: Final = ("libtensorflow", "lib_pywrap_tensorflow")
_STANDARD: Final = "libstdc++.so.6"
_WITHOUT_ATTRIBUTES: Final = (
    # tensorflow::Tensor::Tensor(DataType, const TensorShape&), and with an allocator before them
    "_ZN10tensorflow6TensorC1ENS_8DataTypeERKNS_11TensorShapeE",
    "_ZN10tensorflow6TensorC1EPN3tsl9AllocatorENS_8DataTypeERKNS_11TensorShapeE",
)
_ALIGNED: Final = "_ZN3tsl4port13AlignedMallocEmSt11align_val_t"
_DATA: Final = "_ZNK10tensorflow6Tensor4dataEv"
_END: Final = "_ZN10tensorflow6TensorD1Ev"
_GIVING: Final[dict[str, Failure]] = {
    **dict.fromkeys(("malloc", "calloc", "realloc", "aligned_alloc", "_Znwm", "_Znam"), "nothing"),
    **dict.fromkeys(("posix_memalign", "pthread_create"), "code"),
    _ALIGNED: "nothing",
    **dict.fromkeys(_WITHOUT_ATTRIBUTES, "tensor"),
}
_NEW: Final = frozenset({"_Znwm", "_Znam"})
"""`operator new`, which throws: `malloc` is asked first, as libstdc++ itself does."""
_OF_TENSORS: Final = frozenset({"posix_memalign", _ALIGNED})
"""In TensorFlow's framework these are called for tensors below 256 KiB, which are checked."""
_FLOAT: Final = 1  # DT_FLOAT
_BUFFER, _ADDRESS = 24, 16
"""Where a tensor keeps its buffer, and a buffer its address (framework/tensor.h)."""


@dataclass
class UncheckedMemory:
    """The calls that are diverted, once they are found."""

    rescue: NativeRescue = field(default_factory=NativeRescue)
    _diversion: Diversion | None = None
    _searched: bool = False

    @property
    def is_there(self) -> bool:
        """Whether they could be found in this TensorFlow."""
        return self._diversion is not None

    def prepare(self) -> None:
        """Find them: once, which takes a tenth of a second and some MiB."""
        if not self._searched:
            try:
                self._diversion = self._find()
            except MemoryError:  # another guard holds; the next one has another attempt
                return
            self._searched = True

    def begin(self, enclosure: Enclosure) -> None:
        """Divert them, if they were found."""
        if self._diversion is not None:
            enclosure.rescue = self.rescue
            enclosure.adjust(enclosure.look())
            self._diversion.begin()

    def end(self, enclosure: Enclosure) -> None:
        """Let all calls go where they went."""
        if self._diversion is not None:
            self._diversion.end()
        self.rescue.forget_tensors()
        enclosure.rescue = None

    def _find(self) -> Diversion | None:
        tensorflow = sys.modules.get("tensorflow")
        if tensorflow is None or sys.platform != "linux":
            return None
        folder = Path(tensorflow.__file__ or "").parent
        try:
            framework = ctypes.CDLL(str(folder / _FRAMEWORK))
            targets = self._targets(framework, is_laid_out=is_laid_out(framework))
            if not targets or not self.rescue.seal():
                return None
            return Diversion(dict(_slots(folder, targets)))
        except (OSError, AttributeError, ValueError):
            return None

    def _targets(self, framework: Any, *, is_laid_out: bool) -> dict[str, int]:
        """Where calls of each function are to go."""
        plain, standard = ctypes.CDLL(None), ctypes.CDLL(_STANDARD)
        found: dict[str, int] = {}
        for name, fails in _GIVING.items():
            if fails == "tensor" and not is_laid_out:
                continue
            home = framework if name.startswith("_ZN") else standard if name in _NEW else plain
            own = _address(getattr(home, name))
            first = _address(plain.malloc) if name in _NEW else own
            target = self.rescue.make(fails, first, own)
            if target is None:
                return {}
            found[name] = target
        return found


def _slots(folder: Path, targets: dict[str, int]) -> Iterator[tuple[int, int]]:
    for begin, path in mapped_libraries(folder).items():
        library = Path(path).name
        if not library.startswith(_LIBRARIES):
            continue
        names = [name for name in targets if not (library == _FRAMEWORK and name in _OF_TENSORS)]
        for name, slots in find_slots(begin, names).items():
            for slot in slots:
                yield slot, targets[name]


def is_laid_out(framework: Any) -> bool:
    """Whether a tensor of this TensorFlow has its buffer and address where they are looked for."""
    shape = (ctypes.c_uint64 * 3)(0, 0, 1)  # TensorShapeRep of a scalar: one element
    tensor = (ctypes.c_uint64 * 16)()
    make, ask, end = (getattr(framework, name) for name in (_WITHOUT_ATTRIBUTES[0], _DATA, _END))
    make.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    ask.argtypes, end.argtypes = [ctypes.c_void_p], [ctypes.c_void_p]
    ask.restype = ctypes.c_void_p
    make(tensor, _FLOAT, shape)
    with ProcessMemory() as memory:  # a bad address is no crash there
        address = memory.words(tensor[_BUFFER // 8] + _ADDRESS, 1)
    fits = address == (ask(tensor),) and not any(tensor[_BUFFER // 8 + 1 :])
    end(tensor)
    return fits


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
