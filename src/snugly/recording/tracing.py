"""TensorFlow's profiler, for one purpose: every allocation and free, and nothing it can do without.

Only one session of it can run at a time. When the program itself starts one, ours gives way.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

CLOCK_MARK: Final = "snugly-clock"
"""An event that carries the system's time, to set the trace's clock by."""

_MARKS: Final = 5  # of which the least delayed counts
# Allocator events are of level 2: TraceMeLevel::kInfo, tsl/profiler/lib/traceme.h, TF 2.21.
_OPTIONS: Final = {"host_tracer_level": 2, "python_tracer_level": 0, "device_tracer_level": 0}

# With a session, every task of every thread pool is recorded too: of a ResNet-50 step two thirds of
# all events. TensorFlow has no option for it, but the function by which the session registers its
# listener can take it out again (tsl/platform/tracing.h; exported by TensorFlow 2.16 to 2.21).
_SET_LISTENER: Final = (
    "_ZN3tsl7tracing17SetEventCollectorENS0_13EventCategoryEPKNS0_14EventCollectorE"
)
_SCHEDULED, _RUN = 0, 1  # EventCategory::kScheduleClosure, kRunClosure


class TraceSession:
    """One stretch of tracing: `start`, then `stop`, which gives back the profiler's file."""

    def __init__(self) -> None:
        self._session: Any = None
        self._folder = ""

    def start(self) -> bool:
        """Begin; False where another session is running."""
        from tensorflow.python.profiler.internal import _pywrap_profiler

        kind = getattr(_pywrap_profiler.ProfilerSession, "original", None)
        session = (kind or _pywrap_profiler.ProfilerSession)()
        self._folder = tempfile.mkdtemp(prefix="snugly-trace-")
        try:
            session.start(self._folder, _OPTIONS)
        except Exception:  # noqa: BLE001 - AlreadyExistsError; whatever it is, we do without
            shutil.rmtree(self._folder, ignore_errors=True)
            return False
        self._session = session
        _quieten()
        _mark_clock()
        return True

    def stop(self) -> bytes:
        """End, and give back the XSpace; nothing where it could not be had."""
        session, self._session = self._session, None
        if session is None:
            return b""
        try:
            session.export_to_tb()
            found = next(Path(self._folder).rglob("*.xplane.pb"), None)
            return found.read_bytes() if found is not None else b""
        except Exception:  # noqa: BLE001 - a full disk must not end the program that is recorded
            return b""
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def give_way(before: Callable[[], None], after: Callable[[], None]) -> Callable[[], None]:
    """Call `before` when the program starts a session of its own and `after` when that ends.

    Gives back what puts TensorFlow's class in its place again.
    """
    from tensorflow.python.profiler.internal import _pywrap_profiler

    original: Any = _pywrap_profiler.ProfilerSession

    class Theirs:
        """What the program takes for TensorFlow's session."""

        def __init__(self) -> None:
            self._inner = original()

        def start(self, *arguments: Any) -> Any:
            before()
            return self._inner.start(*arguments)

        def stop(self) -> Any:
            try:
                return self._inner.stop()
            finally:
                after()

        def export_to_tb(self) -> Any:
            try:
                return self._inner.export_to_tb()
            finally:
                after()

    Theirs.original = original  # type: ignore[attr-defined]
    _pywrap_profiler.ProfilerSession = Theirs

    def restore() -> None:
        _pywrap_profiler.ProfilerSession = original

    return restore


def _quieten() -> None:
    """Take the thread pools' listener out. Where that cannot be done, tracing costs more."""
    import tensorflow as tf

    for name in ("libtensorflow_framework.so.2", "libtensorflow_framework.2.dylib"):
        path = Path(tf.sysconfig.get_lib()) / name
        if not path.exists():
            continue
        try:
            library = ctypes.CDLL(str(path), mode=getattr(os, "RTLD_NOLOAD", 0) | os.RTLD_NOW)
            set_listener = getattr(library, _SET_LISTENER)
        except (OSError, AttributeError):
            return
        set_listener.argtypes, set_listener.restype = [ctypes.c_uint, ctypes.c_void_p], None
        set_listener(_SCHEDULED, None)
        set_listener(_RUN, None)


def _mark_clock() -> None:
    from tensorflow.python.profiler import trace

    for _ in range(_MARKS):
        with trace.Trace(CLOCK_MARK, t=str(time.time_ns())):
            pass
