"""PROGRAM as people write it (a file, `module:name`, `script.py:name`) → the object it names."""

from __future__ import annotations

import importlib
import inspect
import runpy
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snugly.errors import InputError, ProgramNotFoundError, SnuglyError, suggest
from snugly.readers.user_code import failed

if TYPE_CHECKING:
    from collections.abc import Iterator

KERAS, SAVED_MODEL, TFLITE, OBJECT = "keras", "saved-model", "tflite", "object"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program is: a file of some kind, or a name in some code."""

    kind: str
    path: Path | None = None
    module: str | None = None
    name: str | None = None

    @property
    def label(self) -> str:
        """What people call it: the file's name, the module's, and the name inside."""
        where = self.path.name if self.path is not None else str(self.module)
        return f"{where}:{self.name}" if self.name else where


def find_place(text: str) -> Place:
    """Decide what a PROGRAM is, without loading anything."""
    path = Path(text)
    if text and path.is_dir():
        return Place(SAVED_MODEL, path)
    if path.suffix in {".keras", ".tflite"}:
        if not path.is_file():
            raise ProgramNotFoundError(f"there is no file {text}", hint=_near_files(path))
        return Place(KERAS if path.suffix == ".keras" else TFLITE, path)
    source, separator, name = text.rpartition(":")
    if not separator or not source or not name.isidentifier():
        raise _not_a_place(text, path)
    if source.endswith(".py"):
        script = Path(source)
        if not script.is_file():
            raise ProgramNotFoundError(f"there is no script {source}", hint=_near_files(script))
        return Place(OBJECT, script, name=name)
    return Place(OBJECT, module=source, name=name)


def _not_a_place(text: str, path: Path) -> ProgramNotFoundError:
    if path.suffix == ".py":
        return ProgramNotFoundError(
            f"{text} is a script; which model or function in it?", hint=f"write {text}:name"
        )
    kinds = "give a .keras file, a SavedModel folder, script.py:name or module:name"
    if path.is_file():
        return ProgramNotFoundError(f"{text} is not a kind of file that Snugly reads", hint=kinds)
    return ProgramNotFoundError(f"there is no file or folder {text}", hint=kinds)


def _near_files(path: Path) -> str:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either; check the path"
    near = suggest(path.name, [entry.name for entry in path.parent.iterdir()][:1000])
    return near or "check the path; it is taken relative to the current folder"


def load_object(place: Place) -> Any:
    """Run the script, or import the module, and give back what the name stands for."""
    names = _run_script(place.path) if place.path is not None else _import(str(place.module))
    name = str(place.name)
    if name not in names:
        where = place.path.name if place.path is not None else place.module
        public = sorted(known for known in names if not known.startswith("_"))
        raise ProgramNotFoundError(
            f"{where} has no {name!r}",
            hint=suggest(name, public) or f"it has {', '.join(public[:8]) or 'nothing'}",
        )
    return names[name]


def _run_script(path: Path) -> dict[str, Any]:
    with _importable(path.resolve().parent):  # as `python script.py` does
        try:
            # Not "__main__": what stands behind `if __name__ == "__main__"` is the run we are
            # here to avoid.
            return runpy.run_path(str(path), run_name=path.stem)
        except SnuglyError:
            raise
        except (Exception, SystemExit) as problem:
            raise failed(f"{path.name} failed", problem) from problem


def _import(module: str) -> dict[str, Any]:
    with _importable(Path.cwd()):  # as `python -m module` does
        try:
            return vars(importlib.import_module(module))
        except ModuleNotFoundError as problem:
            if not _is_part(problem.name, module):
                raise failed(f"importing {module} failed", problem) from problem
            raise ProgramNotFoundError(
                f"there is no module {module!r}",
                hint="give a module that Python can import here, or script.py:name",
            ) from problem
        except SnuglyError:
            raise
        except (Exception, SystemExit) as problem:
            raise failed(f"importing {module} failed", problem) from problem


def _is_part(missing: str | None, module: str) -> bool:
    """Whether it is the module itself, or a package it is in, that is missing."""
    return missing is not None and f"{module}.".startswith(f"{missing}.")


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:  # the script may have changed it
            sys.path.remove(str(folder))


def needs_arguments(function: Any) -> bool:
    """Whether a function cannot be called without arguments, as far as Python can tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(
        parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
        for parameter in parameters
    )


def call_builder(builder: Any, name: str) -> Any:
    """Call the user's zero-argument builder."""
    if needs_arguments(builder):
        raise InputError(
            f"{name} takes arguments, and a builder takes none",
            hint=f"if {name} is what to predict, decorate it: @tf.function(input_signature=[...])",
        )
    try:
        return builder()
    except SnuglyError:
        raise
    except (Exception, SystemExit) as problem:
        raise failed(f"{name}() failed", problem) from problem
