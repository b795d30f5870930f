"""Work on a model in a process of its own: what crashes there is an error here.

Converters, quantisers and interpreters are compiled code that was not written for files it does
not like. A child gets a folder with what it needs, leaves what it made in it, and says in
`answer.json` how it went. It has a limit of time, and of memory where the system keeps one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

REQUEST: Final = "request.json"
ANSWER: Final = "answer.json"
LARGEST_ANSWER: Final = 1 << 20
ADDRESS_SPACE: Final = 24 << 30
"""Bytes of addresses that a child may have; TensorFlow alone reserves several GiB of them."""
LONGEST_REASON: Final = 300
_QUIET: Final = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "TQDM_DISABLE": "1"}
FAILED: Final = "SNG573"


@contextmanager
def folder_for(request: Mapping[str, Any]) -> Iterator[Path]:
    """A folder with a request in it; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="snugly-") as name:
        folder = Path(name)
        (folder / REQUEST).write_text(json.dumps(request))
        yield folder


def run_child(module: str, folder: Path, what: str, *, seconds: float) -> dict[str, Any]:
    """Run a module on a folder; what it answered.

    Args:
        module: a module of this room, which calls `answering`.
        folder: from `folder_for`.
        what: who does it, as an error would say: "the converter".
        seconds: after so many it is ended.

    Raises:
        InputError: it was refused, failed, was ended, or took too long.
    """
    command = [sys.executable, "-P", "-m", f"snugly.lite.{module}", str(folder)]
    with (folder / "log").open("wb") as log:
        try:
            done = subprocess.run(  # noqa: S603 - this Python, a module of ours
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=seconds,
                check=False,
                env=os.environ | _QUIET | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"{what} took more than {seconds:.0f} seconds", code=FAILED) from None
        except OSError as error:
            raise InputError(f"{what} cannot be started: {error.strerror}", code=FAILED) from None
    answer = _answer_in(folder)
    if answer is None or (done.returncode and "error" not in answer):
        message = f"{what} {_end_of(done.returncode)}{_last_words(folder)}"
        raise InputError(message, code=FAILED)
    if "error" in answer:
        if answer.get("missing"):
            raise MissingDependencyError(str(answer["error"]), hint=str(answer["hint"]))
        code, hint = answer.get("code") or FAILED, answer.get("hint")
        raise InputError(str(answer["error"]), code=code, hint=hint)
    return answer


def answering(work: Callable[[dict[str, Any], Path], dict[str, Any]]) -> None:
    """What a child's module does when it is run: the request in, the answer out."""
    folder = Path(sys.argv[1])
    _limit_memory()
    request = json.loads((folder / REQUEST).read_text())
    answer: dict[str, Any]
    try:
        answer = work(request, folder)
    except InputError as error:
        answer = {"error": error.message, "code": error.code, "hint": error.hint}
        answer["missing"] = isinstance(error, MissingDependencyError)
    except MemoryError:
        answer = {"error": "there is not enough memory for it"}
    except Exception as error:  # noqa: BLE001 - whatever a converter raises is its answer
        answer = {"error": reason_of(error)}
    (folder / ANSWER).write_text(json.dumps(answer))
    # Compiled libraries are known to crash while they are taken down; nothing is left to do.
    sys.stdout.flush()
    os._exit(0)


def reason_of(error: BaseException) -> str:
    """The first line of an error that says something, with its kind."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[0] if lines else "no reason given"
    return f"{type(error).__name__}: {said}"[:LONGEST_REASON]


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = ADDRESS_SPACE if most == resource.RLIM_INFINITY else min(ADDRESS_SPACE, most)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer_in(folder: Path) -> dict[str, Any] | None:
    path = folder / ANSWER
    try:
        if path.stat().st_size > LARGEST_ANSWER:
            return None
        answer = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def _end_of(code: int) -> str:
    if code < 0:
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"ended with exit code {code}"


def _last_words(folder: Path) -> str:
    """The last line that was written, which of a crash is mostly its reason."""
    try:
        text = (folder / "log").read_bytes()[-4000:].decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {lines[-1][:LONGEST_REASON]}" if lines else ""
