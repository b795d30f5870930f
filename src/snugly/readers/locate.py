"""PROGRAM as people write it (a file, `module:name`, `script.py:name`) → the object it names."""

from __future__ import annotations

import importlib
import runpy
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snugly.errors import ProgramFailedError, ProgramNotFoundError, suggest

KERAS, SAVED_MODEL, TFLITE, OBJECT = "keras", "saved-model", "tflite", "object"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program is: a file of some kind, or a name in some code."""

    kind: str
    path: Path | None = None
    module: str | None = None
    name: str | None = None


def find_place(text: str) -> Place:
    """Decide what a PROGRAM is, without loading anything."""
    path = Path(text)
    if path.is_dir():
        return Place(SAVED_MODEL, path)
    if path.suffix in (".keras", ".tflite"):
        if not path.is_file():
            raise ProgramNotFoundError(f"there is no file {text}", hint=_near_files(path))
        return Place(KERAS if path.suffix == ".keras" else TFLITE, path)
    source, separator, name = text.rpartition(":")
    if not separator or not name.isidentifier():
        if path.suffix == ".py":
            raise ProgramNotFoundError(
                f"{text} is a script; which model or function in it?", hint=f"write {text}:name"
            )
        raise ProgramNotFoundError(
            f"there is no file or folder {text}",
            hint="give a .keras or .tflite file, a SavedModel folder, script.py:name or module:name",
        )
    if source.endswith(".py"):
        script = Path(source)
        if not script.is_file():
            raise ProgramNotFoundError(f"there is no script {source}", hint=_near_files(script))
        return Place(OBJECT, script, name=name)
    return Place(OBJECT, module=source, name=name)


def _near_files(path: Path) -> str:
    folder = path.parent if path.parent.is_dir() else Path()
    near = suggest(path.name, [entry.name for entry in folder.iterdir()][:1000])
    return near or "check the path; it is taken relative to the current folder"


def load_object(place: Place) -> Any:
    """Run the script, or import the module, and give back what the name stands for."""
    names = _run_script(place.path) if place.path is not None else _import(str(place.module))
    name = str(place.name)
    if name not in names:
        where = place.path.name if place.path is not None else place.module
        public = [known for known in names if not known.startswith("_")]
        raise ProgramNotFoundError(
            f"{where} has no {name!r}", hint=suggest(name, public) or f"it has {', '.join(sorted(public)[:8]) or 'nothing'}"
        )
    return names[name]


def _run_script(path: Path) -> dict[str, Any]:
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # as `python script.py` does
    try:
        # Not "__main__": what stands behind `if __name__ == "__main__"` is the run we are here to avoid.
        return runpy.run_path(str(path), run_name=path.stem)
    except (Exception, SystemExit) as problem:
        raise _failed(f"{path.name} failed", problem) from problem
    finally:
        sys.path.remove(folder)


def _import(module: str) -> dict[str, Any]:
    sys.path.insert(0, str(Path.cwd()))  # as `python -m module` does
    try:
        return vars(importlib.import_module(module))
    except ModuleNotFoundError as problem:
        if problem.name is None or not module.startswith(problem.name):
            raise _failed(f"importing {module} failed", problem) from problem
        raise ProgramNotFoundError(
            f"there is no module {module!r}", hint="give a module that Python can import here, or script.py:name"
        ) from problem
    except Exception as problem:
        raise _failed(f"importing {module} failed", problem) from problem
    finally:
        sys.path.remove(str(Path.cwd()))


def call_builder(builder: Any, name: str) -> Any:
    """Call the user's zero-argument builder."""
    try:
        return builder()
    except Exception as problem:
        raise _failed(f"{name}() failed", problem) from problem


def _failed(what: str, problem: BaseException) -> ProgramFailedError:
    own = [frame for frame in traceback.extract_tb(problem.__traceback__) if "snugly" not in frame.filename]
    where = f" at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
    text = str(problem).strip().splitlines()
    return ProgramFailedError(f"{what}{where}: {type(problem).__name__}: {text[0][:200] if text else ''}")
