"""A `.keras` file → model, from its configuration alone.

No weight is read, and no code it carries is run.
"""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

from snugly.errors import UnreadableProgramError, UnsafeProgramError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The largest configuration of a stock model (NASNetLarge) is 0.5 MB; a file that claims more is
# not read.
LARGEST_CONFIGURATION = 64 << 20
# Classes are looked up by module name, so a file could name any function on the machine.
TRUSTED_PACKAGES = ("keras", "keras_hub", "keras_cv", "keras_nlp")
# Keras has functions that download, unpack and load, which are part of no model. Newer versions
# refuse them (NON_MODELING_APIS, keras/src/saving/serialization_lib.py); older ones do not. So of
# functions, only those are allowed that live where a model's functions do.
FUNCTION_HOMES = (
    *("activations", "constraints", "initializers", "losses", "metrics", "ops", "regularizers"),
)


def load_keras_file(path: Path, *, allow_code: bool = False) -> Any:
    """The model, compiled if the file says how.

    Call it inside a graph, so that its weights take no memory.
    """
    import keras

    configuration = _configuration(path)
    if not allow_code:
        _refuse_code(path, configuration)
    compile_configuration = configuration.pop("compile_config", None)
    # The file is untrusted: whatever its configuration makes Keras raise is the file's fault.
    try:
        model = keras.saving.deserialize_keras_object(configuration, safe_mode=not allow_code)
    except Exception as problem:
        raise UnreadableProgramError(
            f"Keras cannot rebuild {path.name}: {_first_line(problem)}",
            hint="a custom layer must be importable: give the script that builds the model as"
            " script.py:name",
        ) from problem
    if not isinstance(model, keras.Model):
        raise UnreadableProgramError(
            f"{path.name} holds no model: its configuration is that of a {type(model).__name__}"
        )
    if compile_configuration:
        try:
            model.compile_from_config(compile_configuration)
        except Exception as problem:
            raise UnreadableProgramError(
                f"Keras cannot compile {path.name} as it was saved: {_first_line(problem)}",
                hint="save the model again, or give the script that builds it as script.py:name",
            ) from problem
    return model


def _configuration(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo("config.json")
            claimed = entry.file_size
            with archive.open(entry) as file:
                text = file.read(LARGEST_CONFIGURATION) if claimed <= LARGEST_CONFIGURATION else b""
        configuration = json.loads(text) if text else None
    # NotImplementedError: a way of packing that Python does not know. RuntimeError: encrypted.
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError, RuntimeError) as problem:
        raise UnreadableProgramError(
            f"{path.name} is not a .keras file, or is damaged: {_first_line(problem)}",
            hint="save it again with model.save('model.keras')",
        ) from problem
    if claimed > LARGEST_CONFIGURATION:
        raise UnreadableProgramError(
            f"the configuration in {path.name} is larger than any model's ({claimed} bytes)"
        )
    if not isinstance(configuration, dict):
        raise UnreadableProgramError(
            f"{path.name} holds no model: its configuration is not an object"
        )
    return configuration


def _refuse_code(path: Path, configuration: Any) -> None:
    for part in _objects(configuration):
        name, module = part.get("class_name"), part.get("module")
        if name in {"Lambda", "__lambda__"}:
            raise UnsafeProgramError(f"{path.name} carries Python code in a Lambda layer")
        if name == "function":
            name = part.get("config")
            trusted = _is_function_of_keras(module, name)
        else:
            # By Keras's convention, what begins with a small letter is a function.
            trusted = module is None or (_is_in_keras(module) and str(name)[:1].isupper())
        if name is not None and not trusted:
            raise UnsafeProgramError(
                f"{path.name} names code outside Keras's models: {name!r} of {module!r}",
                hint="if you trust the file and that module, allow it: --allow-code",
            )


def _is_in_keras(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in TRUSTED_PACKAGES


def _is_function_of_keras(module: Any, name: Any) -> bool:
    import keras

    # Keras writes its own losses and activations as "builtins", by their name alone.
    homes = [getattr(keras, home) for home in FUNCTION_HOMES]
    if module == "builtins" or module in {f"keras.{home}" for home in FUNCTION_HOMES}:
        return isinstance(name, str) and any(hasattr(home, name) for home in homes)
    return False


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
