"""Do something right after a module has been imported, without importing it oneself.

A script that is recorded may set variables before it imports TensorFlow, or never import it;
importing it on the script's behalf would change what is recorded.
"""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def when_imported(name: str, action: Callable[[ModuleType], None]) -> None:
    """Call `action(module)` once, now if the module is there already, else after its import."""
    module = sys.modules.get(name)
    if module is not None:
        action(module)
        return
    _finder().actions.setdefault(name, []).append(action)


def _finder() -> _Finder:
    found = next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)
    if found is None:
        found = _Finder()
        sys.meta_path.insert(0, found)
    return found


class _Finder(MetaPathFinder):
    """Finds nothing itself: asks the others, and stands behind the loader they name."""

    def __init__(self) -> None:
        self.actions: dict[str, list[Callable[[ModuleType], None]]] = {}
        self._asking: set[str] = set()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Called by Python's import."""
        del path, target
        if fullname not in self.actions or fullname in self._asking:
            return None
        self._asking.add(fullname)
        try:
            spec = find_spec(fullname)  # asks us again, and we have nothing to say
        finally:
            self._asking.discard(fullname)
        if spec is None or spec.loader is None:
            return None
        # Whoever asks may only want to know whether there is such a module: not done yet.
        spec.loader = _Loader(spec.loader, lambda: self.actions.pop(fullname, []))
        return spec


class _Loader(Loader):
    """The real loader, with something to do afterwards."""

    def __init__(
        self, loader: Any, take_actions: Callable[[], list[Callable[[ModuleType], None]]]
    ) -> None:
        self._loader = loader
        self._take_actions = take_actions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # get_source, get_data, …: tracebacks ask for them

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Called by Python's import."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Called by Python's import."""
        module.__loader__ = self._loader  # nobody needs to know that we were here
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for action in self._take_actions():
            action(module)
