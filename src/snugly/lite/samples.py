"""Sample inputs of a model: of a file that the user gives, or made up, which is said.

Quantising needs them twice: to learn between which values each tensor moves, and to say how far
the outputs of the quantised model are from those of the other. Made-up inputs serve for a look at
the memory; the ranges that they give are not those of real data.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from snugly.errors import InputError, ProgramNotFoundError

if TYPE_CHECKING:
    import os

    from snugly.readers.tflite import LiteModel, LiteTensor

MADE_UP: Final = 16
MOST_SAMPLES: Final = 128
LARGEST_FILE: Final = 2 << 30
MISMATCH: Final = "SNG571"
_TYPES: Final[dict[str, Any]] = {
    "FLOAT32": np.float32,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "BOOL": np.bool_,
}
_DAMAGED: Final = (
    *(OSError, EOFError, ValueError, KeyError, RuntimeError, MemoryError, NotImplementedError),
    *(zipfile.BadZipFile, SyntaxError),
)


@dataclass(frozen=True, slots=True)
class Samples:
    """Of each input of a model, its values: the first axis counts the samples."""

    arrays: tuple[Any, ...]
    made_up: bool
    note: str

    @property
    def count(self) -> int:
        """How many samples there are."""
        return len(self.arrays[0]) if self.arrays else 0


def made_up_samples(model: LiteModel) -> Samples:
    """Random inputs, the same each time: half of them between 0 and 1, half normal."""
    random = np.random.default_rng(0)
    arrays: list[Any] = []
    for tensor in inputs_of(model):
        kind = _kind_of(tensor)
        shape = (MADE_UP, *tensor.shape)
        if kind is np.float32:
            values = random.random(shape, np.float32)
            values[1::2] = random.standard_normal(values[1::2].shape, np.float32)
            arrays.append(values)
        else:  # indices into tables, mostly; 0 and 1 are in every table
            arrays.append(random.integers(0, 2, shape).astype(kind))
    note = (
        f"{MADE_UP} made-up inputs, which are not representative: give real ones with --samples,"
        " or the quantised model may be of no use"
    )
    return Samples(tuple(arrays), made_up=True, note=note)


def read_samples(path: str | os.PathLike[str], model: LiteModel) -> Samples:
    """The samples in a `.npy` or `.npz` file, each array an input with the samples first.

    Raises:
        InputError: SNG571 where they are not inputs of this model.
    """
    place = Path(path)
    given = _loaded(place)
    tensors = inputs_of(model)
    arrays = [
        _fitted(given[name], tensor, place.name)
        for name, tensor in zip(_names(given, tensors, place.name), tensors, strict=True)
    ]
    counts = {len(array) for array in arrays}
    if len(counts) > 1:
        raise InputError(
            f"the arrays in {place.name} hold different numbers of samples:"
            f" {', '.join(map(str, sorted(counts)))}",
            code=MISMATCH,
        )
    count = counts.pop() if counts else 0
    if not count:
        raise InputError(f"there are no samples in {place.name}", code=MISMATCH)
    first = "the first " if count == MOST_SAMPLES else ""
    return Samples(tuple(arrays), made_up=False, note=f"{first}{count} inputs of {place.name}")


def inputs_of(model: LiteModel) -> list[LiteTensor]:
    """The tensors that the model is given."""
    return [model.main.tensors[index] for index in model.main.inputs if index >= 0]


def _kind_of(tensor: LiteTensor) -> Any:
    if tensor.type.name not in _TYPES:
        raise InputError(
            f"the input {tensor.name!r:.80} is of {tensor.type.name.lower()}, of which no samples"
            " can be made",
            code=MISMATCH,
        )
    return _TYPES[tensor.type.name]


def _loaded(path: Path) -> dict[str, Any]:
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise InputError(f"{path.name} has more than 2 GiB", code=MISMATCH)
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                claimed = sum(entry.file_size for entry in archive.infolist())
            if claimed > LARGEST_FILE:
                raise InputError(f"{path.name} unpacks to more than 2 GiB", code=MISMATCH)
            with np.load(path, allow_pickle=False) as loaded:
                return {name: loaded[name] for name in loaded.files}
        return {"": np.load(path, mmap_mode="r", allow_pickle=False)}
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise ProgramNotFoundError(
            f"there is no file {str(path)[:200]!r} with samples",
            hint="give what numpy.save or numpy.savez wrote: --samples samples.npy",
        ) from None
    except _DAMAGED as error:
        reason = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        raise InputError(f"cannot read samples from {path.name}: {reason}", code=MISMATCH) from None


def _names(given: dict[str, Any], tensors: list[LiteTensor], file: str) -> list[str]:
    """Which array is which input: by name, else by number, else the only one."""
    if len(given) == len(tensors) == 1:
        return list(given)
    plain = {plain_name(name): name for name in given}
    wanted = [plain_name(tensor.name) for tensor in tensors]
    if len(set(wanted)) == len(wanted) and all(name in plain for name in wanted):
        return [plain[name] for name in wanted]
    numbered = [f"arr_{place}" for place in range(len(tensors))]
    if set(numbered) == given.keys():
        return numbered
    has = ", ".join(repr(name) for name in list(given)[:8] if name) or "one array"
    raise InputError(
        f"the arrays in {file} are not the model's inputs: it has {has}, the model wants"
        f" {', '.join(repr(name[:60]) for name in wanted[:8]) or 'none'}",
        code=MISMATCH,
        hint="numpy.savez('samples.npz', name=array, …), each array with the samples first",
    )


def plain_name(name: str) -> str:
    """The name that a user gave, without what the converter put around it."""
    return name.removeprefix("serving_default_").partition(":")[0]


def _fitted(array: Any, tensor: LiteTensor, file: str) -> Any:
    """An array as samples of an input: of its shape and type, and finite."""
    shape, kind = tensor.shape, _kind_of(tensor)
    if array.shape[1:] == shape and array.ndim > 0:
        pass
    elif shape and shape[0] == 1 and array.ndim > 0 and array.shape[1:] == shape[1:]:
        array = array.reshape(len(array), *shape)
    elif array.shape == shape:
        array = array[None]
    else:
        raise InputError(
            f"the samples in {file} are of shape {_text(array.shape)}; the input"
            f" {plain_name(tensor.name)!r:.80} takes {_text(shape)}",
            code=MISMATCH,
            hint=f"give an array of {_text(('samples', *shape))}",
        )
    if array.dtype.kind not in "fiub" or (kind is not np.float32 and array.dtype.kind == "f"):
        raise InputError(
            f"the samples in {file} are {array.dtype}; the input {plain_name(tensor.name)!r:.80}"
            f" takes {tensor.type.name.lower()}",
            code=MISMATCH,
        )
    array = array[:MOST_SAMPLES]
    with np.errstate(over="ignore", invalid="ignore"):  # looked at below
        made = np.ascontiguousarray(array).astype(kind)
    wrong = ~np.isfinite(made) if kind is np.float32 else made != array
    if np.any(wrong):
        what = "infinite or no numbers" if kind is np.float32 else "too large for the input"
        raise InputError(f"some of the samples in {file} are {what}", code=MISMATCH)
    return made


def _text(shape: tuple[Any, ...]) -> str:
    return "×".join(map(str, shape)) or "a scalar"
