"""Outcome: how a guarded command ended, with every figure that was seen."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from snugly.guarding.policy import Limit
    from snugly.units import Size

STOPPED: Final = 75
"""The exit code where the guard stopped the command (EX_TEMPFAIL of sysexits.h)."""

_SIGNALLED: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a guarded command ended."""

    command: tuple[str, ...]
    own_code: int
    """The command's own exit code; 128 + n where signal n ended it, as shells say it."""
    by_signal: bool = False
    """A signal ended the command itself; a shell that passes 137 on ended with a code."""
    limit: Limit
    peak: Size
    """The most that all processes of the command held at a time that was looked at."""
    seconds: float
    looks: int
    samples: tuple[tuple[float, int], ...] = ()
    """Seconds since the start and bytes held, thinned out evenly."""
    tail: bytes = b""
    stopped: bool = False
    """The guard ended the command, because it held more than its limit."""
    killed: bool = False
    """SIGTERM was not enough."""
    refused: bool = False
    """The command ended of an allocation that the guard's limit refused."""
    refusing: bool = False
    """Whether RLIMIT_DATA was in force."""
    passed_on: tuple[str, ...] = ()
    """Signals that were sent to the guard and passed on."""
    outliving: tuple[tuple[int, str], ...] = ()
    """Processes that go on after the command has ended: number and name."""
    oom_kills: int | None = None
    """How often the OOM killer struck in our control group meanwhile; None where unknown."""

    held_by: tuple[str, ...] = ()
    """Which limits held the command, the gentlest first."""

    @property
    def exit_code(self) -> int:
        """What `snugly run` ends with."""
        return STOPPED if self.stopped or self.refused else self.own_code

    @property
    def signal_name(self) -> str | None:
        """The signal that ended the command, if one did."""
        if not self.by_signal:
            return None
        try:
            return signal.Signals(self.own_code - _SIGNALLED).name
        except ValueError:
            return None

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "command": list(self.command),
            "exit_code": self.exit_code,
            "command_exit_code": self.own_code,
            "signal": self.signal_name,
            "stopped": self.stopped,
            "killed": self.killed,
            "refused": self.refused,
            "limit": int(self.limit.size),
            "limit_origin": self.limit.origin,
            "peak": int(self.peak),
            "seconds": round(self.seconds, 3),
            "looks": self.looks,
            "refusing": self.refusing,
            "held_by": list(self.held_by),
            "oom_kills": self.oom_kills,
            "signals_passed_on": list(self.passed_on),
            "outliving": [{"pid": pid, "name": name} for pid, name in self.outliving],
            "samples": [{"seconds": round(at, 4), "held": held} for at, held in self.samples],
        }
