"""Whether workers are fit for the work: the same packages as here, in the same versions."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Any, Final

from snugly.errors import InputError

_TENSORFLOW: Final = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly")
"""Packages that bring TensorFlow, by the names they are installed under."""

_NAMED: Final = 4
"""Workers that a message names, at most."""


def check_versions(client: Any, *, tensorflow: bool) -> None:
    """Refuse workers that lack a package, or have another version of it.

    Raises:
        InputError: The message names the workers.
    """
    here = metadata.version("snugly")
    found = client.get_versions(packages=["snugly"])["workers"]
    installed = {name: _packages(about).get("snugly") for name, about in found.items()}
    _require("snugly", here, installed, "pip install 'snugly[dask]'")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    pythons = {name: _minor(_packages(about).get("python")) for name, about in found.items()}
    _require("Python", python, pythons, f"run the workers with Python {python}")
    if tensorflow:
        there = client.run(tensorflow_version)
        _require(
            "TensorFlow",
            tensorflow_version() or "",
            there,
            f"pip install tensorflow=={tensorflow_version()}",
        )


def tensorflow_version() -> str | None:
    """Which TensorFlow is installed, without importing it."""
    for name in _TENSORFLOW:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _require(package: str, here: str, there: dict[str, str | None], remedy: str) -> None:
    without = [name for name, version in there.items() if version is None]
    if without:
        raise InputError(
            f"{package} is not installed on {_some(without)}", code="SNG582", hint=remedy
        )
    other = {name: version for name, version in there.items() if version != here}
    if other:
        named = _some([f"{version} on {name}" for name, version in other.items()])
        raise InputError(
            f"{package} is {here} here, but {named}",
            code="SNG582",
            hint=f"install the same version everywhere: {remedy}",
        )


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    named = ", ".join(names[:_NAMED])
    return f"{named} and {more} more" if more > 0 else named


def _packages(about: Any) -> dict[str, Any]:
    found = about.get("packages", {}) if isinstance(about, dict) else {}
    return {**about.get("host", {}), **found} if isinstance(about, dict) else {}


def _minor(version: Any) -> str | None:
    return None if version is None else ".".join(str(version).split(".")[:2])
