"""A `.keras` file → model, from its configuration alone: no weight is read, no code it carries is run."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from snugly.errors import UnreadableProgramError, UnsafeProgramError

# The largest configuration of a stock model (NASNetLarge) is 0.5 MB; a file that claims more is not read.
LARGEST_CONFIGURATION = 64 << 20
# Classes are looked up by module name, so a file could name any function on the machine.
TRUSTED_MODULES = ("keras", "keras_hub", "keras_cv", "keras_nlp")


def load_keras_file(path: Path, *, allow_code: bool = False) -> Any:
    """The model, compiled if the file says how. Call it inside a graph, so that its weights take no memory."""
    import keras

    configuration = _configuration(path)
    if not allow_code:
        _refuse_code(path, configuration)
    compile_configuration = configuration.get("compile_config")
    try:
        model = keras.saving.deserialize_keras_object(
            {key: value for key, value in configuration.items() if key != "compile_config"}, safe_mode=not allow_code
        )
    except (ValueError, TypeError, KeyError, ImportError, AttributeError) as problem:
        raise UnreadableProgramError(
            f"Keras cannot rebuild {path.name}: {_first_line(problem)}",
            hint="a custom layer must be importable: give the script that builds the model as script.py:name",
        ) from problem
    if compile_configuration:
        try:
            model.compile_from_config(compile_configuration)
        except (ValueError, TypeError, KeyError) as problem:
            raise UnreadableProgramError(
                f"Keras cannot compile {path.name} as it was saved: {_first_line(problem)}",
                hint="save the model again, or give the script that builds it as script.py:name",
            ) from problem
    return model


def _configuration(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo("config.json")
            if entry.file_size > LARGEST_CONFIGURATION:
                raise UnreadableProgramError(f"the configuration in {path.name} is larger than any model's")
            with archive.open(entry) as file:
                configuration = json.loads(file.read(LARGEST_CONFIGURATION + 1))
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError, RecursionError) as problem:
        raise UnreadableProgramError(
            f"{path.name} is not a .keras file, or is damaged: {_first_line(problem)}",
            hint="save it again with model.save('model.keras')",
        ) from problem
    if not isinstance(configuration, dict):
        raise UnreadableProgramError(f"{path.name} holds no model: its configuration is not an object")
    return configuration


def _refuse_code(path: Path, configuration: Any) -> None:
    for part in _objects(configuration):
        name, module = part.get("class_name"), part.get("module")
        if name in ("Lambda", "__lambda__"):
            raise UnsafeProgramError(f"{path.name} carries Python code in a Lambda layer")
        if isinstance(module, str) and module.partition(".")[0] not in TRUSTED_MODULES:
            raise UnsafeProgramError(
                f"{path.name} names code outside Keras: {name!r} of {module!r}",
                hint="if you trust the file and that module, allow it: --allow-code",
            )


def _objects(configuration: Any) -> Iterator[dict[str, Any]]:
    waiting = [configuration]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _first_line(problem: BaseException) -> str:
    text = str(problem).strip() or type(problem).__name__
    return text.splitlines()[0][:200]
