"""`snugly.guard`: a limit for a block of code, inside the process."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
from contextlib import ContextDecorator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from snugly.errors import InputError, MemoryLimitExceeded
from snugly.guarding.async_raise import Raised, tell
from snugly.guarding.conversion import at_users_line, converted, is_refusal, let_go
from snugly.guarding.enclosure import ENCLOSURE, Block
from snugly.guarding.policy import pressure_at
from snugly.guarding.shared_memory import listen
from snugly.guarding.watcher import Watcher, give_back, stop_threads
from snugly.integrations.idle_memory import release_idle_memory
from snugly.integrations.tensor_allocator import find_tensor_allocator
from snugly.integrations.tensorflow_guard import TensorFlowGuard
from snugly.integrations.tensorflow_parts import is_ready
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType, TracebackType

_WATCHER: Final = Watcher(ENCLOSURE)
_TENSORFLOW: Final = TensorFlowGuard()
_REPLACED: Final = "REPLACED BY MemoryLimitExceeded"
"""pybind11's words for it (pybind11/pytypes.h)."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """What `on_pressure` is told."""

    held: Size
    limit: Size


class guard(ContextDecorator):  # noqa: N801 - the public contract's name, used as a statement
    """Holds a block of code to a limit of memory, and raises where it asks for more.

    ::

        with snugly.guard("14GiB"):
            model.fit(x, y)

    What is refused raises `MemoryLimitExceeded`, a `MemoryError`, at the line that asked, and the
    process goes on. What grows slowly is told of, then freed where nobody needs it, then
    `on_pressure` is called, then it is raised as well. The limit is for the whole process: all its
    threads, and what it held before. A guard inside a guard cannot allow more. Needs Linux, and no
    privileges.

    It does not see other processes, a GPU's memory, or files that are only mapped.

    Args:
        memory: `"14GiB"`, `"500 MB"`, or a number of bytes.
        on_pressure: Called once when the limit is near, to save or to let go, in the main thread
            if the guard is there. It may take a `Pressure`.

    Raises:
        MemoryLimitExceeded: The process holds more than that already.
    """

    def __init__(
        self,
        memory: str | SupportsIndex,
        *,
        on_pressure: Callable[..., object] | None = None,
    ) -> None:
        self.limit = Size(memory)
        if self.limit == 0:
            raise InputError("a guard's limit must be more than nothing", hint='guard("4GiB")')
        if on_pressure is not None and not callable(on_pressure):
            raise InputError(
                f"on_pressure must be a function, not {type(on_pressure).__name__}",
                hint="on_pressure=lambda: model.save('last.keras')",
            )
        self._on_pressure = on_pressure
        self._blocks: list[Block] = []

    def _recreate_cm(self) -> guard:
        """As a decorator: a guard of its own for each call, so that calls may overlap."""
        return type(self)(self.limit, on_pressure=self._on_pressure)

    def __enter__(self) -> guard:  # noqa: PYI034 - the class is final in practice
        _TENSORFLOW.prepare()
        held = self._refuse_if_full()
        offered = self._offered()
        frame = sys._getframe(1)  # noqa: SLF001 - the block whose end is watched for
        block = Block(
            int(self.limit),
            threading.get_ident(),
            frame,
            self._call_on_pressure if self._on_pressure is not None else None,
            offered,
            held,
            frozenset(thread.ident or 0 for thread in threading.enumerate()),
            entered_at=frame.f_lasti,
        )
        listen(ENCLOSURE)
        ENCLOSURE.enter(block)
        self._blocks.append(block)
        try:
            _WATCHER.start()
            _TENSORFLOW.install()
            ENCLOSURE.adjust(ENCLOSURE.look())
            _IMPORTING.begin()
        except BaseException:
            ENCLOSURE.leave(block)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        __tracebackhide__ = True
        block = self._blocks.pop()
        limit = ENCLOSURE.limit if ENCLOSURE.active else block.limit
        try:
            ENCLOSURE.leave(block)
        except MemoryLimitExceeded as late:  # sent before the end was noted
            ENCLOSURE.leave(block)
            problem, traceback = problem or late, traceback or late.__traceback__
            if problem is late:
                raise MemoryLimitExceeded(late.message, hint=late.hint) from None
        if block.raised is not None:
            stop_threads(block, f"the guard's limit of {Size(limit)} was exceeded")
        _tidy_up(block, problem, traceback)
        if problem is None:
            return False
        if isinstance(problem, Raised):
            raise _plain(problem, traceback) from None
        if block.raised is not None and _REPLACED in str(problem):
            # It arrived while native code was making an exception of its own.
            text = str(problem).partition(f"{_REPLACED}: ")[2].partition("\n")[0]
            raise _plain(Raised(text or None), traceback) from problem
        if is_refusal(problem):
            told = converted(problem, limit, ENCLOSURE.look().held)
            raise told.with_traceback(at_users_line(traceback)) from problem
        if isinstance(problem, MemoryLimitExceeded):
            problem.__traceback__ = at_users_line(traceback)
        return False

    def _refuse_if_full(self) -> int:
        """What is held, if the limit is more."""
        held = ENCLOSURE.look().held
        if held > pressure_at(int(self.limit)):
            free_unused()
            held = ENCLOSURE.look().held
        if held > self.limit:
            raise MemoryLimitExceeded(
                f"the process holds {Size(held)} (measured) already, more than the guard's limit of"
                f" {self.limit}: nothing can run in it",
                code="SNG605",
                hint=f"the limit is for the whole process; state more than {Size(held)}, or free"
                " what is not needed",
            )
        return held

    def _offered(self) -> int:
        """What the machine can give; a limit beyond all it has would guard nothing."""
        from snugly.devices.host import detect_host

        host = detect_host()
        total = host.total if host.cgroup is None else min(host.total, host.cgroup.limit)
        if self.limit > total:
            tell(
                f"the guard's limit of {self.limit} is more than {host.offered.description} has:"
                f" {Size(int(total))} (measured); the kernel may kill the process first (SNG604)",
                None,
            )
        return int(host.offered.bytes)

    def _call_on_pressure(self) -> None:
        function = self._on_pressure
        if function is None:
            return
        try:
            inspect.signature(function).bind(object())
        except (TypeError, ValueError):
            function()
        else:
            function(Pressure(Size(ENCLOSURE.look().held), self.limit))


def free_unused() -> None:
    """Free what nobody needs, and give it back to the system; TensorFlow's too, outside a guard."""
    gc.collect()
    allocator = find_tensor_allocator() if is_ready() and not ENCLOSURE.active else None
    if allocator is not None:
        release_idle_memory(allocator)
        allocator.restore()
    give_back()


def is_guarded() -> bool:
    """Whether a guard holds in this process."""
    return ENCLOSURE.active


def _tidy_up(block: Block, problem: BaseException | None, traceback: TracebackType | None) -> None:
    """Save what was under way when a guard ended it; keep nothing of what something else ended."""
    replaced = block.raised is not None and _REPLACED in str(problem)
    if replaced or isinstance(problem, Raised | MemoryLimitExceeded) or is_refusal(problem):
        let_go(problem, traceback)
        ENCLOSURE.save()
        if not ENCLOSURE.active:
            gc.collect()
            give_back()
    elif not ENCLOSURE.active:
        ENCLOSURE.savers.clear()


def _plain(problem: Raised, traceback: TracebackType | None) -> MemoryLimitExceeded:
    """The same, as an exception that can be made anew anywhere."""
    told = MemoryLimitExceeded(problem.message, hint=problem.hint)
    return told.with_traceback(at_users_line(traceback))


class _Importing:
    """Notices that TensorFlow is imported inside a guard, as soon as it is whole."""

    def begin(self) -> None:
        """Listen, unless TensorFlow is there."""
        if "tensorflow" not in sys.modules and self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def end(self) -> None:
        """No longer listen."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called by Python for every module that is imported."""
        del path, target
        if name != "tensorflow":
            return None
        self.end()
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            with ENCLOSURE.lock:
                if ENCLOSURE.active:
                    _TENSORFLOW.install(importing=True)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


_IMPORTING: Final[Any] = _Importing()


def _finish() -> None:
    """Put everything back: no guard holds any more."""
    _IMPORTING.end()
    _TENSORFLOW.remove()
    _WATCHER.stop()


ENCLOSURE.finishers.append(_finish)
