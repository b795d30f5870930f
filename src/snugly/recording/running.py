"""The process of a script that is recorded: `python -m snugly.recording.running OPTIONS SCRIPT …`.

The script is run as Python would run it: as `__main__`, with its own arguments and its own folder
first on the path. Its exit code, its output and its errors are its own.
"""

from __future__ import annotations

import builtins
import json
import os
import runpy
import signal
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from snugly.recording.recorder import Recorder
from snugly.recording.windows import Plan

if TYPE_CHECKING:
    from types import TracebackType

INTERRUPTED = 130  # 128 + SIGINT, what shells expect


def main() -> int:
    """Record one script; its exit code."""
    options, sys.argv = json.loads(sys.argv[1]), sys.argv[2:]
    recorder = Recorder(
        Path(options["output"]),
        Plan(options["mode"], options["largest_file"]),
        {"program": options["program"], "command": sys.argv, "mode": options["mode"]},
    )
    watch = _leak_watch() if options["leaks"] else None
    recorder.start()
    _stop_when_terminated(recorder)
    code = _run(sys.argv[0], is_module=options["module"])
    leaks: dict[str, Any] = {}
    if watch is not None:
        watch.stop()
        leaks["leaks"] = [leak.to_data() for leak in watch.leaks]
    recorder.stop(exit_code=code, **leaks)
    return code


def _leak_watch() -> Any:
    from snugly.recording.leaks import LeakWatch

    watch = LeakWatch()
    watch.start()
    return watch


def _run(script: str, *, is_module: bool) -> int:
    """Run it to its end, threads included; the exit code Python would have given."""
    try:
        _run_as_main(script, is_module=is_module)
    except SystemExit as leaving:
        return _exit_code(leaving)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as problem:  # noqa: BLE001 - Python's own last resort, without our frames
        problem.__traceback__ = _without_ours(problem.__traceback__)
        sys.excepthook(type(problem), problem, problem.__traceback__)
        return 1
    finally:
        _wait_for_threads()
    return 0


def _run_as_main(script: str, *, is_module: bool) -> None:
    if is_module:
        sys.path[0] = str(Path.cwd())
        runpy.run_module(script, run_name="__main__", alter_sys=True)
        return
    path = Path(script).resolve()
    sys.path[0] = str(path.parent)
    code = compile(path.read_bytes(), script, "exec", dont_inherit=True)
    module = ModuleType("__main__")
    vars(module).update(__file__=script, __builtins__=builtins)
    sys.modules["__main__"] = module
    exec(code, vars(module))  # noqa: S102 - this is what the user asked us to run


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code & 0xFF
    print(leaving.code, file=sys.stderr)  # noqa: T201 - as Python does
    return 1


def _without_ours(frames: TracebackType | None) -> TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename in {__file__, runpy.__file__}:
        frames = frames.tb_next
    return frames


def _wait_for_threads() -> None:
    """Python ends when the last thread does that is not a daemon; so does the recording."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _stop_when_terminated(recorder: Recorder) -> None:
    """Where the script does not care itself, SIGTERM ends it as always, but not unrecorded."""

    def stop(number: int, frame: Any) -> None:
        del frame
        recorder.stop(exit_code=128 + number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, stop)


if __name__ == "__main__":
    sys.exit(main())
