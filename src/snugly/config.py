"""Settings: `[tool.snugly]` in the nearest pyproject.toml, and `SNUGLY_*` variables over it.

Settings are defaults for the command line, never hidden behaviour: an argument always wins. ::

    [tool.snugly]
    device = "jetson-nano"      # or: memory = "14 GiB"
    output-format = "json"

    [tool.snugly.lint]
    select = ["SNG40", "impossible-size"]
    ignore = ["float64-input"]
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from snugly.errors import ConfigurationError, InvalidSizeError, suggest
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping

KNOWN_SETTINGS: Final = ("memory", "device", "output-format", "lint")
KNOWN_LINT_SETTINGS: Final = ("select", "ignore")
OUTPUT_FORMATS: Final = ("text", "json", "github", "sarif")

ENVIRONMENT_SWITCHES: Final = ("SNUGLY_DEBUG",)
"""SNUGLY_* variables that are switches of the command line, not settings."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults that the user has set. None means: not set."""

    memory: Size | None = None
    device: str | None = None
    output_format: str | None = None
    lint_select: tuple[str, ...] | None = None
    lint_ignore: tuple[str, ...] = ()


def load_settings(
    start: Path | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Read the settings that hold in a folder (by default the current one).

    A variable wins over the file. `memory` and `device` exclude each other, so one of them in a
    variable also silences the other one in the file.
    """
    path = _nearest_pyproject((start or Path.cwd()).resolve())
    written = _from_file(path) if path else {}
    overriding = _from_environment(os.environ if environment is None else environment)
    if {"memory", "device"} & overriding.keys():
        written = {key: value for key, value in written.items() if key not in {"memory", "device"}}
    chosen = written | overriding
    if {"memory", "device"} <= chosen.keys():
        source = chosen["device"][1]
        raise ConfigurationError(
            f"both memory and device are set in {source}", code="SNG202", hint="keep one of them"
        )
    lint = _lint_table(*chosen["lint"]) if "lint" in chosen else {}
    return Settings(
        memory=_size(*chosen["memory"]) if "memory" in chosen else None,
        device=_text("device", *chosen["device"]) if "device" in chosen else None,
        output_format=_output_format(*chosen["output-format"])
        if "output-format" in chosen
        else None,
        lint_select=lint.get("select"),
        lint_ignore=lint.get("ignore", ()),
    )


_Sourced = dict[str, tuple[Any, str]]
"""Setting → its raw value and where it was written, for messages."""


def _nearest_pyproject(folder: Path) -> Path | None:
    candidates = (parent / "pyproject.toml" for parent in (folder, *folder.parents))
    return next((path for path in candidates if path.is_file()), None)


def _from_file(path: Path) -> _Sourced:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigurationError(
            f"cannot read {path}: {error}", hint=f"correct the TOML in {path.name}"
        ) from error
    table: Any = document.get("tool", {}).get("snugly", {})
    if not isinstance(table, dict):
        raise ConfigurationError(f"tool.snugly in {path} is not a table")
    settings = cast("dict[str, Any]", table)
    for key in settings:
        _require_known(key, f"[tool.snugly] in {path}")
    return {key: (value, f"[tool.snugly] in {path}") for key, value in settings.items()}


def _from_environment(environment: Mapping[str, str]) -> _Sourced:
    settings: _Sourced = {}
    for name, value in environment.items():
        if not name.startswith("SNUGLY_") or name in ENVIRONMENT_SWITCHES:
            continue
        key = name.removeprefix("SNUGLY_").lower().replace("_", "-")
        _require_known(key, f"the variable {name}")
        settings[key] = (value, f"the variable {name}")
    return settings


def _require_known(key: str, source: str) -> None:
    if key not in KNOWN_SETTINGS:
        near = suggest(key, KNOWN_SETTINGS)
        known = f"known settings are {', '.join(KNOWN_SETTINGS)}"
        raise ConfigurationError(
            f"unknown setting {key!r} in {source}", hint=f"{near} {known}".strip()
        )


def _size(value: Any, source: str) -> Size:
    try:
        return Size(value)
    except InvalidSizeError as error:
        raise ConfigurationError(f"memory in {source}: {error}", hint=error.hint) from error


def _text(key: str, value: Any, source: str) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{key} in {source} must be text, not {value!r}")
    return value


def _output_format(value: Any, source: str) -> str:
    if value not in OUTPUT_FORMATS:
        raise ConfigurationError(
            f"output-format in {source} cannot be {value!r}",
            hint=f"choose one of {', '.join(OUTPUT_FORMATS)}",
        )
    return cast("str", value)


def _lint_table(value: Any, source: str) -> dict[str, tuple[str, ...]]:
    """`select` and `ignore` under `[tool.snugly.lint]`; which rules there are, the rules know."""
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"lint in {source} must be a table",
            hint='write [tool.snugly.lint] and under it ignore = ["SNG424"]',
        )
    table = cast("dict[str, Any]", value)
    for key, words in table.items():
        if key not in KNOWN_LINT_SETTINGS:
            near = suggest(key, KNOWN_LINT_SETTINGS)
            raise ConfigurationError(
                f"unknown setting {key!r} for lint in {source}",
                hint=f"{near} known are {', '.join(KNOWN_LINT_SETTINGS)}".strip(),
            )
        if not _are_texts(words):
            raise ConfigurationError(
                f"{key} for lint in {source} must be a list of codes or names of rules",
                hint=f'write {key} = ["SNG404", "float64-input"]',
            )
    return {key: tuple(words) for key, words in table.items()}


def _are_texts(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(one, str) for one in cast("list[Any]", value))
