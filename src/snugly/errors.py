"""The errors Snugly raises. Each has a code, with a page in the documentation, and a hint.

::

    SnuglyError                      everything below
    ├─ InputError                    what was asked for cannot be done: exit code 2
    │  ├─ UsageError                 the command line itself
    │  ├─ ConfigurationError         [tool.snugly], SNUGLY_* variables
    │  ├─ InvalidSizeError           "4 bananas"                        (also a ValueError)
    │  ├─ ProgramNotFoundError       no such file, module or name       (also a LookupError)
    │  ├─ UnreadableProgramError     damaged, or not what its name says (also a ValueError)
    │  ├─ UnsafeProgramError         carries code; needs allow_code     (also a PermissionError)
    │  ├─ ProgramFailedError         the user's own builder raised
    │  ├─ UnknownDimensionError      asked for by name, never guessed   (also a ValueError)
    │  ├─ UnpredictableProgramError  read, but some size cannot be derived
    │  ├─ UnknownDeviceError         suggests near names                (also a LookupError)
    │  ├─ UnreadableRecordError      damaged, truncated, of the future  (also a ValueError)
    │  └─ MissingDependencyError     names the install command          (also an ImportError)
    └─ MemoryLimitExceeded           a guard refused an allocation      (also a MemoryError)
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, ClassVar

from snugly.codes import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable


class SnuglyError(Exception):
    """Anything Snugly raises on purpose: one paragraph, a code, and a hint that can be followed.

    Args:
        message: What happened, in one sentence with the figures in it.
        code: A code of `snugly.codes.REGISTRY`; each class has its own default.
        hint: The literal next step. The registry's remedy stands in where none is given.
    """

    default_code: ClassVar[str] = "SNG001"

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.hint = hint or REGISTRY[self.code].remedy

    def __str__(self) -> str:
        return self.message

    def render(self) -> str:
        """The message as the terminal shows it: what happened, a blank line, what to do."""
        return f"error[{self.code}]: {self.message}\n\nhint: {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries; keyword-only arguments would be lost on the way.
        return _restore, (type(self), self.message, self.code, self.hint)


class InputError(SnuglyError):
    """What was asked for cannot be done as it was asked."""

    default_code = "SNG002"


class UsageError(InputError):
    """The command line cannot be understood."""


class ConfigurationError(InputError):
    """A setting in pyproject.toml or in a SNUGLY_* variable cannot be used."""

    default_code = "SNG003"


class InvalidSizeError(InputError, ValueError):
    """A size of memory that cannot be read."""

    default_code = "SNG004"


class MissingDependencyError(InputError, ImportError):
    """A package is needed that is not installed."""

    default_code = "SNG005"


class UnknownDimensionError(InputError, ValueError):
    """A dimension the answer depends on was not given."""

    default_code = "SNG103"


class ProgramNotFoundError(InputError, LookupError):
    """There is no such file, module, or name in it."""

    default_code = "SNG104"


class UnreadableProgramError(InputError, ValueError):
    """The file is damaged, or is not what its name says."""

    default_code = "SNG105"


class UnsafeProgramError(InputError, PermissionError):
    """Loading the file would run code it carries, and nobody allowed that."""

    default_code = "SNG106"


class UnpredictableProgramError(InputError):
    """The program was read, but the size of some part of it cannot be derived."""

    default_code = "SNG107"


class ProgramFailedError(InputError):
    """The user's own script or builder raised while it was run."""

    default_code = "SNG108"


class UnknownDeviceError(InputError, LookupError):
    """The catalogue has no device of this name."""

    default_code = "SNG201"


class UnreadableRecordError(InputError, ValueError):
    """A file that is no record, is damaged, or was written by a later version."""

    default_code = "SNG301"


class MemoryLimitExceeded(SnuglyError, MemoryError):  # noqa: N818 - public contract's name
    """A guarded computation asked for more than its limit and was refused; work can go on."""

    default_code = "SNG601"


def missing_tensorflow() -> MissingDependencyError:
    """The error for a command that needs TensorFlow where there is none."""
    return MissingDependencyError(
        "this needs TensorFlow, which is not installed",
        hint="pip install 'snugly[tensorflow]'",
    )


def suggest(name: str, known: Iterable[str]) -> str:
    """Near names as the beginning of a hint ("did you mean jetson-nano?"), or nothing."""
    near = difflib.get_close_matches(name.lower(), list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else ""


def _restore(kind: type[SnuglyError], message: str, code: str, hint: str) -> SnuglyError:
    return kind(message, code=code, hint=hint)
