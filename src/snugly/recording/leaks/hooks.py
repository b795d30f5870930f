"""Hooks: something of ours runs beside a function of TensorFlow's, and is gone afterwards.

A hook never changes what the function gets or gives, and a failing one is silenced, not raised.
Other people may wrap the same function before or after us: on removal the original is put back
only where our wrapper is still the one in place, and a wrapper that is buried under another's
passes everything through.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# A hook that fails this often is wrong about this version of TensorFlow: the watch is switched off.
_MOST_FAILURES = 16


class Hooks:
    """The hooks of one watch: put in place one by one, taken out all at once."""

    def __init__(self) -> None:
        self.active = True
        self.failures: dict[str, list[str]] = {}
        self._placed: list[tuple[Any, str, Any, Any]] = []
        self._here = threading.local()

    def wrap(self, owner: Any, name: str, hook: Callable[..., Any]) -> None:
        """Put `hook(original)` in the place of `owner.name`; a name that is not there is left."""
        original = vars(owner).get(name) if isinstance(owner, type) else getattr(owner, name, None)
        if original is None:
            return
        is_static = isinstance(original, staticmethod)  # as `__new__` is
        function = original.__func__ if is_static else original
        wrapper = hook(function)
        functools.update_wrapper(wrapper, function)
        # AutoGraph calls what carries this mark as it is, and does not translate it.
        wrapper.autograph_info__ = {}
        wrapper = staticmethod(wrapper) if is_static else wrapper
        setattr(owner, name, wrapper)
        self._placed.append((owner, name, original, wrapper))

    def after(self, owner: Any, name: str, action: Callable[..., None]) -> None:
        """Call `action(result, args, kwargs)` each time `owner.name` has returned."""

        def hook(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                if self.active:
                    self.safely(action, result, args, kwargs)
                return result

            return wrapper

        self.wrap(owner, name, hook)

    def safely(self, action: Callable[..., Any], *args: Any) -> Any:
        """Run something of ours: not inside itself, and without raising."""
        here = self._here
        if getattr(here, "busy", False):
            return None
        here.busy = True
        try:
            return action(*args)
        except Exception as problem:  # noqa: BLE001 - the user's program goes on, whatever befalls us
            self._failed(action, problem)
            return None
        finally:
            here.busy = False

    def _failed(self, action: Callable[..., Any], problem: Exception) -> None:
        name = getattr(action, "__qualname__", repr(action))
        self.failures.setdefault(name, []).append(f"{type(problem).__name__}: {problem}")
        if len(self.failures[name]) >= _MOST_FAILURES:
            self.active = False

    def remove(self) -> None:
        """Put the originals back."""
        self.active = False
        for owner, name, original, wrapper in reversed(self._placed):
            present = vars(owner).get(name) if isinstance(owner, type) else getattr(owner, name)
            if present is wrapper:
                setattr(owner, name, original)
        self._placed.clear()
