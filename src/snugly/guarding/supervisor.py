"""The supervisor: runs a command, looks at what it holds, refuses, stops, and sees how it ends.

It stands outside the process, so it is there when native code crashes or the kernel kills. One
thread waits for signals with a timeout, which is also the pause between two looks; a second hands
stderr on. It reaps every child of its process, so it wants a process of its own: `snugly run`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError
from snugly.guarding import policy
from snugly.guarding.limits import (
    SUPERVISED,
    adopt_orphans,
    data_limit_of,
    forbid_core,
    guarded_environment,
    prepare_child,
    set_data_limit,
)
from snugly.guarding.oom import oom_kills
from snugly.guarding.outcome import Outcome
from snugly.guarding.own_group import make_group
from snugly.guarding.processes import ProcessTree, catches, is_alive, name_of
from snugly.guarding.refusal import asked_for, says_refused
from snugly.guarding.scope import TOLD, scoped
from snugly.guarding.tail import ErrorTail
from snugly.guarding.terminal import open_channel
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.guarding.own_group import Choice

PASSED_ON: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_FROM_THE_KERNEL: Final = 0x80  # SI_KERNEL, asm-generic/siginfo.h: from the terminal

SEARCH_EVERY: Final = 0.01
"""Seconds between two searches for new processes, where any was started."""
OUTLIVING: Final = 2.0
"""Seconds that children which outlive the command are given to end."""
MOST_SAMPLES: Final = 512
STDERR_ENDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a command is guarded."""

    limit: policy.Limit
    grace: float = 5.0
    """Seconds between SIGTERM and SIGKILL."""
    refuse: bool = True
    """Set RLIMIT_DATA, so that the kernel refuses instead of the guard killing."""
    group: Choice = "never"
    """Whether the command gets a control group of its own, as a net below the guard."""
    environment: tuple[tuple[str, str], ...] = ()
    """Further variables for the command."""


def supervise(command: Sequence[str], settings: Settings) -> Outcome:
    """Run a command under a limit and say how it ended.

    Raises FileNotFoundError or PermissionError (or another OSError) where it cannot be started.
    """
    if not hasattr(signal, "sigtimedwait"):
        raise InputError(
            "the guard needs Linux: this system cannot wait for signals with a timeout",
            hint="run the command in a Linux container or under WSL",
        )
    # Nothing may arrive between the start and the first wait; a blocked signal stays pending.
    watched = {*PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    _open_standard_files()
    try:
        # Where it is ignored (a parent's choice that is inherited), exit codes are lost.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        adopt_orphans()
        return _Run(tuple(command), settings, before).outcome()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(slots=True)
class _State:
    """What changes while the command runs."""

    status: int | None = None
    peak: int = 0
    looks: int = 0
    samples: list[tuple[float, int]] = field(default_factory=list)
    keep_every: int = 1
    asked_to_end: float | None = None
    killed: bool = False
    passed_on: list[str] = field(default_factory=list)
    searched: float = 0.0
    limits: dict[int, int] = field(default_factory=dict)
    tighter: set[int] = field(default_factory=set)
    """Processes in which a guard of their own holds."""


class _Run:
    """One command under guard."""

    def __init__(self, command: tuple[str, ...], settings: Settings, mask: set[Any]) -> None:
        self.command, self.settings = command, settings
        self.limit = int(settings.limit.size)
        self.state = _State()
        self.tree = ProcessTree()
        self.kills_before = oom_kills()
        channel = open_channel()
        first = policy.data_limit(0, 0, self.limit) if settings.refuse else None
        cap = policy.tensorflow_cap(self.limit)
        marked = {SUPERVISED: "1"} if settings.refuse else {}
        environment = {**os.environ, **guarded_environment(cap, os.environ), **marked}
        environment.update(settings.environment)
        self.group = make_group(policy.group_limit(self.limit), settings.group)
        entrance = None if self.group is None else self.group.entrance()
        words = self._in_scope(environment) if self.group is None else None
        self.in_scope = words is not None
        self.began = time.monotonic()
        try:
            self.child = subprocess.Popen(  # noqa: S603 - what the user asked for
                words or command,
                stderr=channel.written,
                env=environment,
                preexec_fn=prepare_child(first, mask, entrance),  # noqa: PLW1509 - no thread runs yet
            )
        except BaseException:
            os.close(channel.read)
            if self.group is not None:
                self.group.close()
            raise
        finally:
            os.close(channel.written)
            if entrance is not None:
                os.close(entrance)
        if self.group is not None and not self.group.holds(self.child.pid):
            self.group.close()
            self.group = None
        self.watched = {*PASSED_ON, signal.SIGCHLD}
        self.tail = ErrorTail(channel.read, 2)

    def _in_scope(self, environment: dict[str, str]) -> list[str] | None:
        if self.settings.group == "never":
            return None
        return scoped(self.command, policy.group_limit(self.limit), environment)

    def _held_by(self) -> tuple[str, ...]:
        """Which limits hold, the gentlest first."""
        found = ["TensorFlow's allocators"]
        if self.settings.refuse and sys.platform == "linux":
            found.append("RLIMIT_DATA")
        found.append("the guard")
        if self.group is not None:
            found.append(self.group.told)
        elif self.in_scope:
            found.append(TOLD)
        return tuple(found)

    def _kills(self) -> int | None:
        """OOM kills meanwhile, where the command was; a scope is gone by then."""
        if self.group is not None:
            return self.group.oom_kills()
        if self.in_scope:
            return None
        after = oom_kills()
        known = after is not None and self.kills_before is not None
        return (after or 0) - (self.kills_before or 0) if known else None

    def outcome(self) -> Outcome:
        """Guard until the command has ended, then gather what is known."""
        held = 0
        while self.state.status is None:
            held = self._look()
            self._act(held)
            self._wait(policy.pause(self.limit, held))
        seconds = time.monotonic() - self.began
        if self.state.asked_to_end is not None:
            self._end_all(signal.SIGKILL)  # what is left of a command that was stopped
        outliving = self._wait_for_the_rest()
        self.tail.finish(STDERR_ENDS if not outliving else 0.1, self._was_told_to_end)
        try:
            return self._gather(seconds, outliving)
        finally:
            if self.group is not None:
                self.group.close()

    def _was_told_to_end(self) -> bool:
        """After the command's end there is nobody left to pass a signal on to but us."""
        return signal.sigtimedwait(PASSED_ON, 0) is not None

    def _look(self) -> int:
        state, now = self.state, time.monotonic()
        if now - state.searched >= SEARCH_EVERY or not self.tree.members:
            self.tree.refresh(always=not self.tree.members)
            state.searched = now
        look = self.tree.look(self.limit)
        if self.settings.refuse:
            self._refuse(look.data, look.held)
        state.peak = max(state.peak, look.held)
        if state.looks % state.keep_every == 0:
            state.samples.append((now - self.began, look.held))
            if len(state.samples) >= 2 * MOST_SAMPLES:
                del state.samples[1::2]
                state.keep_every *= 2
        state.looks += 1
        return look.held

    def _refuse(self, data: dict[int, int], held: int) -> None:
        """Let RLIMIT_DATA follow what is left; set anew only where it would change."""
        for process, reserved in data.items():
            allowed = policy.data_limit(reserved, held, self.limit)
            if self.state.limits.get(process) != allowed or self._ended_inside(process):
                if self._is_tighter_inside(process, allowed):
                    continue
                self.state.limits[process] = allowed
                set_data_limit(process, allowed)

    def _ended_inside(self, process: int) -> bool:
        """Whether a guard inside has ended and left no limit."""
        return process in self.state.tighter and data_limit_of(process) == -1

    def _is_tighter_inside(self, process: int, allowed: int) -> bool:
        """Whether `snugly.guard` holds in that process: a limit below ours that we did not set."""
        now, ours = data_limit_of(process), self.state.limits.get(process)
        if now is None or now == -1 or ours is None or now == ours or now > allowed:
            self.state.tighter.discard(process)
            return False
        self.state.tighter.add(process)
        return True

    def _act(self, held: int) -> None:
        state = self.state
        since = None if state.asked_to_end is None else time.monotonic() - state.asked_to_end
        action = policy.decide(self.limit, held, since, self.settings.grace)
        if action == "terminate":
            self._ask_to_end()
            state.asked_to_end = time.monotonic()
        elif action == "kill":
            state.killed = True
            self._end_all(signal.SIGKILL)

    def _ask_to_end(self) -> None:
        """SIGTERM to all; the command itself is aborted where that lets it name its line.

        A Python that does nothing about SIGTERM dies of it without a word; of SIGABRT it dies as
        fast, and its fault handler prints where it was.
        """
        self.tree.refresh(always=True)
        for process in self.tree.members:
            speaks = catches(process, signal.SIGABRT) and not catches(process, signal.SIGTERM)
            if speaks and process == self.child.pid:
                forbid_core(process)
                _send(process, signal.SIGABRT)
            else:
                _send(process, signal.SIGTERM)

    def _end_all(self, number: signal.Signals) -> None:
        self.tree.refresh(always=True)
        for process in self.tree.members:
            _send(process, number)

    def _wait(self, seconds: float) -> None:
        info = signal.sigtimedwait(self.watched, seconds)
        while info is not None:
            if info.si_signo == signal.SIGCHLD:
                self._reap()
            else:
                self._pass_on(info)
            info = signal.sigtimedwait(self.watched, 0)

    def _pass_on(self, info: signal.struct_siginfo) -> None:
        """Who ends us means the command; what the terminal sent has reached it already."""
        number = signal.Signals(info.si_signo)
        self.state.passed_on.append(number.name)
        if info.si_code != _FROM_THE_KERNEL and self.state.status is None:
            _send(self.child.pid, number)

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            if process == self.child.pid:
                self.state.status = status
                self.child.returncode = os.waitstatus_to_exitcode(status)

    def _wait_for_the_rest(self) -> tuple[tuple[int, str], ...]:
        """Children that outlive the command are waited for a little, and guarded meanwhile."""
        until = time.monotonic() + OUTLIVING
        self.tree.refresh(always=True)
        while self.tree.members and time.monotonic() < until:
            held = self._look()
            self._act(held)
            self._wait(policy.pause(self.limit, held))
            self.tree.refresh(always=True)
        alive = [process for process in self.tree.members if is_alive(process)]
        return tuple((process, name_of(process)) for process in alive)

    def _gather(self, seconds: float, outliving: tuple[tuple[int, str], ...]) -> Outcome:
        state = self.state
        returned = self.child.returncode
        own_code = 128 - returned if returned < 0 else returned
        tail = self.tail.text()
        text = tail.decode("utf-8", "replace")
        return Outcome(
            command=self.command,
            own_code=own_code,
            by_signal=returned < 0,
            limit=self.settings.limit,
            peak=Size(state.peak),
            seconds=seconds,
            looks=state.looks,
            samples=tuple(state.samples),
            tail=tail,
            stopped=state.asked_to_end is not None,
            killed=state.killed,
            refused=self.settings.refuse
            and policy.was_refused(
                own_code,
                says_so=says_refused(text),
                asked=asked_for(text),
                peak=state.peak,
                limit=self.limit,
            ),
            refusing=self.settings.refuse and sys.platform == "linux",
            passed_on=tuple(state.passed_on),
            outliving=outliving,
            oom_kills=self._kills(),
            held_by=self._held_by(),
        )


def _open_standard_files() -> None:
    """Where a standard file is closed, a pipe of ours would take its number, and its output."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one


def _send(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except (ProcessLookupError, PermissionError):
        return  # it ended meanwhile, or took another user's rights
