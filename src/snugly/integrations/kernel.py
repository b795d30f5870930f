"""A Jupyter kernel under the supervisor: when it dies, the notebook shows why.

`python -m snugly.integrations.kernel -f CONNECTION_FILE` is what the kernelspec of
`snugly install-kernel` starts. It runs ipykernel as its child. Once that has died, its sockets are
free: the supervisor takes the one that notebooks listen to, and sends the story to the cell that
was running. Jupyter then sees the kernel end, as ever.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snugly.guarding import Settings, choose_limit, supervise, tell
from snugly.guarding.policy import Offer
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.guarding import Outcome, Story

NOTE: Final = "_SNUGLY_KERNEL_NOTE"
"""The file in which the kernel says which cell it runs, and its successor finds what happened."""
EXTENSION: Final = "snugly.integrations.kernel_cells"
_RECONNECT: Final = 1.5
"""Seconds in which a notebook connects anew to a socket that was closed and opened again."""
_ENDED_BY_ORDER: Final = frozenset({"SIGTERM", "SIGINT", "SIGHUP", "SIGKILL"})


def main(words: Sequence[str] | None = None) -> int:
    """Run the kernel until it ends, and tell its story if it died."""
    parser = argparse.ArgumentParser(description="a Jupyter kernel under Snugly's supervisor")
    parser.add_argument("-f", dest="connection", required=True)
    parser.add_argument("--memory", default=None)
    given, rest = parser.parse_known_args(words)
    note = Path(f"{given.connection}.snugly")
    os.environ[NOTE] = str(note)
    # ipykernel ends when its parent is not the one that it was told: that is us now.
    os.environ["JPY_PARENT_PID"] = str(os.getpid())
    command = [
        sys.executable, "-m", "ipykernel_launcher", "-f", given.connection,
        f"--ext={EXTENSION}", *rest,
    ]  # fmt: skip
    limit = choose_limit(None if given.memory is None else Size(given.memory), _offer())
    outcome = supervise(command, Settings(limit=limit))
    story = _story(outcome)
    if story is None:
        note.unlink(missing_ok=True)
        return outcome.exit_code
    text = as_text(story)
    sys.stderr.write(text)
    sys.stderr.flush()
    parent = read_note(note).get("parent") or {}
    write_note(note, {"story": text})
    send_story(given.connection, text, parent)
    return outcome.exit_code or 1


def as_text(story: Story) -> str:
    """The story as a cell shows it."""
    mark = f"snugly[{story.code}]" if story.code else "snugly"
    happened = story.happened.replace("the command", "the kernel")
    lines = [f"{mark}: {happened}"]
    for name, value in (
        ("how sure", story.sure),
        ("line", story.line),
        ("tensor", story.tensor),
        ("why", story.why),
    ):
        if value is not None:
            lines.append(f"  {name:9} {value}")
    if story.hint is not None:
        lines += ["", f"hint: {story.hint}"]
    lines.append("hint: `%%snugly_guard` as a cell's first line refuses instead of dying")
    return "\n".join(lines) + "\n"


def send_story(connection: str, text: str, parent: dict[str, Any]) -> None:
    """Send a text to the cell that was running, through the socket of the kernel that died."""
    from jupyter_client.connect import ConnectionFileMixin
    from jupyter_client.session import Session

    try:
        about = json.loads(Path(connection).read_text(encoding="utf-8"))
        session = Session(
            key=about["key"].encode(), signature_scheme=about.get("signature_scheme", "")
        )
        channels = ConnectionFileMixin(connection_file=connection)
        channels.load_connection_file()
        socket = _bind(channels)
        try:
            time.sleep(_RECONNECT)
            content = {"name": "stderr", "text": text}
            session.send(socket, "stream", content, parent=parent, ident=b"stream.stderr")
            time.sleep(0.2)  # closing at once would drop what is still on its way
        finally:
            socket.close(linger=1000)
    except Exception as problem:  # noqa: BLE001 - the story is in the log and in the note as well
        sys.stderr.write(f"snugly: cannot tell the notebook: {problem}\n")


def _bind(channels: Any) -> Any:
    import zmq

    socket = zmq.Context.instance().socket(zmq.XPUB)
    socket.setsockopt(zmq.LINGER, 1000)
    separator = ":" if channels.transport == "tcp" else "-"
    socket.bind(f"{channels.transport}://{channels.ip}{separator}{channels.iopub_port}")
    return socket


def read_note(path: Path) -> dict[str, Any]:
    """What a note says; nothing where it is missing or damaged."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def write_note(path: Path, data: dict[str, Any]) -> None:
    """Write a note; a disk that is full must not stop a kernel."""
    try:
        path.write_text(json.dumps(data, default=str), encoding="utf-8")
    except OSError:
        return


def _story(outcome: Outcome) -> Story | None:
    """The story of a kernel that died; None for one that was told to end."""
    if outcome.own_code == 0:
        return None
    if outcome.signal_name in _ENDED_BY_ORDER and outcome.signal_name in outcome.passed_on:
        return None
    from snugly.explaining import explain

    code = outcome.own_code if outcome.by_signal else None
    return tell(outcome, explain(outcome.tail, code))


def _offer() -> Offer:
    from snugly.devices.host import detect_host

    host = detect_host()
    total = host.total if host.cgroup is None else min(host.total, host.cgroup.limit)
    return Offer(int(total), int(host.offered.bytes), host.offered.description)


if __name__ == "__main__":
    sys.exit(main())
