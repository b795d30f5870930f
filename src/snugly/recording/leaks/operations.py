"""Operations: which line of the user's code each eager tensor comes from.

TensorFlow runs eager operations through two functions of its native module, which are looked up
anew at each call. Inside a traced function nothing passes here. Every operation is looked at until
the program has done many; from then on only some are, drawn at random so that no step of a loop
is always left out.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.recording.leaks.hooks import Hooks
    from snugly.recording.leaks.journal import Journal

# A look costs 2 to 4 µs, an operation 10 to 20: 20,000 looks are under a tenth of a second.
_LOOK_AT_EACH_OF_THE_FIRST = 20_000
_THEN_ONE_IN = 16


def watch_operations(hooks: Hooks, journal: Journal) -> None:  # noqa: C901 - one hook a way in
    """Note where eager tensors are made."""
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.framework import constant_op

    draw = random.Random(0).random  # noqa: S311 - which operations are looked at is no secret
    state = {"next": 0}

    def note(result: Any) -> None:
        journal.events = event = journal.events + 1
        if event >= state["next"]:
            if event > _LOOK_AT_EACH_OF_THE_FIRST:
                state["next"] = event + int(draw() * 2 * _THEN_ONE_IN)
            hooks.safely(journal.tensors, result, sys._getframe(2))  # noqa: SLF001

    def operation(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            result = original(*args)
            if hooks.active:
                note(result)
            return result

        return run

    def constant(original: Callable[..., Any]) -> Callable[..., Any]:
        def convert(value: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(value, *args, **kwargs)
            if hooks.active and result is not value:
                note(result)
            return result

        return convert

    def call(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            result = original(*args)
            if hooks.active:
                journal.events += 1
                hooks.safely(journal.tensors, result, sys._getframe(1))  # noqa: SLF001
            return result

        return run

    hooks.wrap(pywrap_tfe, "TFE_Py_FastPathExecute", operation)
    hooks.wrap(constant_op, "convert_to_eager_tensor", constant)
    hooks.wrap(pywrap_tfe, "TFE_Py_Execute", call)  # calls of traced functions, above all
