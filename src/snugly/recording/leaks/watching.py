"""LeakWatch: watches a TensorFlow program and names what grows in it.

In a running process::

    with snugly.recording.leaks.watch() as watch:
        for batch in batches:
            step(batch)
    for leak in watch.leaks:
        print(leak.kind, leak.path, leak.line, leak.message)

Started before a script imports TensorFlow, it waits for the import and never imports it itself.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Self

from snugly.recording.importing import when_imported
from snugly.recording.leaks import memory
from snugly.recording.leaks.creations import Creations
from snugly.recording.leaks.graphs import Graphs
from snugly.recording.leaks.hooks import Hooks
from snugly.recording.leaks.journal import Journal
from snugly.recording.leaks.judging import judge
from snugly.recording.leaks.operations import watch_operations
from snugly.recording.leaks.retracing import Retracings
from snugly.recording.leaks.tapes import Tapes

if TYPE_CHECKING:
    from types import ModuleType

    from snugly.recording.leaks.leak import Leak


class LeakWatch:
    """Watches from `start()` to `stop()`; a watch is used once.

    Call `stop()` while the script's variables are still there: they name what is kept. What it
    cannot see: threads that never touch TensorFlow, other processes, code without source text.
    """

    def __init__(self) -> None:
        self._hooks = Hooks()
        self._journal = Journal()
        self._retracings = Retracings(self._hooks, self._journal)
        self._graphs = Graphs(self._hooks, self._journal)
        self._tapes = Tapes(self._hooks, self._journal)
        self._creations = Creations(self._hooks, self._journal)
        self._leaks: list[Leak] | None = None
        self._hoarded = 0
        self._froze = False
        self._process = os.getpid()

    @property
    def leaks(self) -> list[Leak]:
        """What grows, largest first; known once the watch has stopped."""
        return list(self._leaks or [])

    @property
    def hoarded(self) -> int:
        """Bytes that the allocator had kept for later at the end: no leak (measured)."""
        return self._hoarded

    @property
    def problems(self) -> dict[str, list[str]]:
        """What failed inside the watch itself; the program went on without noticing."""
        return self._hooks.failures

    def start(self) -> Self:
        """Begin to watch."""
        when_imported("tensorflow", self._tensorflow_is_here)
        when_imported("keras", self._keras_is_here)
        return self

    def stop(self) -> list[Leak]:
        """Stop watching, take all hooks out, and say what grows."""
        if self._leaks is not None:
            return self.leaks
        self._hooks.active = False
        if os.getpid() != self._process or "tensorflow" not in sys.modules:
            self._leaks = []  # a fork of the process that was watched, or nothing to watch
            self._hooks.remove()
            return []
        memory.collect()
        self._leaks = self._hooks.safely(self._judge) or []
        self._hooks.remove()
        self._thaw()
        self._hoarded = memory.hoarded()
        return self.leaks

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _judge(self) -> list[Leak]:
        self._journal.look(last=True)
        return judge(self._journal, self._retracings, self._graphs, self._tapes)

    def _tensorflow_is_here(self, _: ModuleType) -> None:
        if not self._hooks.active:
            return
        for watch in (
            self._retracings.watch,
            self._graphs.watch,
            self._tapes.watch,
            self._creations.watch_tensorflow,
            self._watch_operations,
            self._journal.begin,
        ):
            self._hooks.safely(watch)
        self._freeze()

    def _keras_is_here(self, _: ModuleType) -> None:
        if self._hooks.active:
            self._hooks.safely(self._creations.watch_keras)
            self._freeze()

    def _watch_operations(self) -> None:
        watch_operations(self._hooks, self._journal)

    def _freeze(self) -> None:
        """Set aside what importing TensorFlow made: 280,000 objects, 0.16 s a collection."""
        if gc.get_freeze_count() and not self._froze:
            return  # the program has its own plans
        gc.collect()
        gc.freeze()
        self._froze = True

    def _thaw(self) -> None:
        if self._froze:
            gc.unfreeze()


def watch() -> LeakWatch:
    """A watch for a `with` block, or to be started and stopped by hand."""
    return LeakWatch()
