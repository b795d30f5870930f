"""From what the user gave to questions: models with names, batch sizes, each of them once."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError, suggest
from snugly.predicting.lite import LITE_RUNTIMES
from snugly.readers.dimensions import Dimensions
from snugly.sweeping.cells import Question

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNTIMES: Final = ("tensorflow", "xla", *LITE_RUNTIMES)


def questions_about(  # noqa: PLR0913 - what is asked of every model
    models: Any,
    *,
    is_away: bool,
    training: bool,
    runtime: str | None,
    dimensions: Mapping[str, int],
    allow_code: bool,
) -> dict[str, Question]:
    """A question for each model, by the name that the table gives it.

    Args:
        models: One or many, or a mapping from names.
        is_away: Whether it is asked in other processes.
        training: As for `sweep`; so are the others.
        runtime: "
        dimensions: "
        allow_code: "

    Raises:
        InputError: There is none, two have one name, or one cannot be sent where it is asked.
    """
    Dimensions(1, dimensions)  # refuses sizes that are none, before anything is loaded
    asked: dict[str, Question] = {}
    for name, model in _named(models):
        program = os.fspath(model) if isinstance(model, str | os.PathLike) else model
        if is_away:
            program = _sendable(name, program)
        question = Question(
            program, training, runtime, dict(dimensions), allow_code, os.fspath(Path.cwd())
        )
        known = asked.setdefault(name, question)
        is_same = known.program is program or (
            isinstance(program, str) and known.program == program
        )
        if not is_same:
            raise InputError(
                f"two models are called {name!r}",
                hint="give names: snugly.sweep({'small': one, 'large': other}, …)",
            )
    if not asked:
        raise InputError("there are no models to predict", hint="give models=['model.keras']")
    return asked


def sizes_of(batch_sizes: Any, *, largest: bool) -> list[int | None]:
    """The batch sizes, each once; None for the program's own."""
    if batch_sizes is None:
        return [] if largest else [None]
    given = batch_sizes if isinstance(batch_sizes, Iterable) else [batch_sizes]
    sizes = [_size(each) for each in given]
    if not sizes:
        raise InputError("there are no batch sizes", hint="give batch_sizes=[8, 32]")
    return list(dict.fromkeys(sizes))


def check_runtime(runtime: str | None) -> None:
    """Refuse what is no runtime; one that does not run some model is that model's error."""
    if runtime is not None and runtime not in RUNTIMES:
        near = suggest(runtime, RUNTIMES)
        raise InputError(
            f"there is no runtime {runtime!r}",
            hint=f"{near} give one of {', '.join(RUNTIMES)}".strip(),
        )


def is_here(question: Question) -> bool:
    """Whether the file that a question names is found by this process."""
    program = question.program
    source, _, name = program.rpartition(":") if isinstance(program, str) else ("", "", "")
    file = source if source.endswith(".py") and name.isidentifier() else program
    return isinstance(file, str) and Path(file).exists()


def _named(models: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(models, Mapping):
        yield from ((str(name), model) for name, model in models.items())
        return
    is_one = isinstance(models, str | os.PathLike) or not isinstance(models, Iterable)
    many: Any = [models] if is_one else models
    for model in many:
        is_text = isinstance(model, str | os.PathLike)
        yield (os.fspath(model) if is_text else _name_of(model)), model


def _name_of(model: Any) -> str:
    name = getattr(model, "name", None) or getattr(model, "__name__", None)
    return str(name or type(model).__name__)


def _size(size: Any) -> int:
    is_number = hasattr(size, "__index__") and not isinstance(size, bool)
    if not is_number or operator.index(size) < 1:
        raise InputError(
            f"a batch size must be a whole number of at least 1, not {size!r}",
            hint="give batch_sizes=[8, 32]",
        )
    return operator.index(size)


def _sendable(name: str, program: Any) -> str:
    """Where another process finds a program: files by their whole path, modules as they are."""
    if not isinstance(program, str):
        raise InputError(
            f"{name!r} is an object of this process, which the workers of a cluster do not have",
            code="SNG587",
            hint="save it where they see it, model.save('/shared/model.keras'), or name what builds"
            " it: 'script.py:build'",
        )
    source, _, inner = program.rpartition(":")
    if not (source and inner.isidentifier()):
        return os.fspath(Path(program).absolute())
    return f"{Path(source).absolute()}:{inner}" if source.endswith(".py") else program
