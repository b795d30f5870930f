"""Decisions of the guard: which limit, how often to look, when to refuse, when to stop.

Pure: figures in, decisions out; no clock, no files, no processes. The gentlest means comes first:

    a request beyond limit + REFUSE_ABOVE   the kernel refuses it: an error, with a line
    held more than limit + STOP_ABOVE       the command is asked to end: many small requests
    held more than limit + KILL_ABOVE       SIGKILL at once: what was asked to end still grows
    after the grace period                  SIGKILL: what was asked to end did not
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from snugly.units import Size

MIB: Final = 1 << 20

REFUSE_ABOVE: Final = 64 * MIB
"""Room that small requests always have. An allocator that reserves ahead may take all that is left
between two looks; TensorFlow then crashed on the next small request, far below the limit."""

STOP_ABOVE: Final = 4 * MIB
"""Above the limit by so much the command is asked to end; less may be a reading's error."""

KILL_ABOVE: Final = 16 * MIB

FASTEST_GROWTH: Final = 16_000_000_000
"""Bytes a second that a program is assumed able to fill: two threads at 7.7 GB/s, measured."""

TENSORFLOW_ITSELF: Final = 256 * MIB
"""What TensorFlow occupies beside its tensors: 211 MiB on a CPU, measured with 2.21."""

REFUSE_INSIDE: Final = 24 * MIB
"""The same room for a guard inside the process, which has no supervisor to stop what grows into it:
a ramp at full speed ends there, so it is the overshoot. Threads (8 MiB each) need some of it."""

RESCUE: Final = 64 * MIB
"""Further room for C++'s operator new alone: TensorFlow crashes where that is refused."""

BESIDE_TENSORS: Final = 64 * MIB
BESIDE_A_CORE: Final = 16 * MIB
BESIDE_PART: Final = 8
"""What tensors leave to the scratch memory of TensorFlow's kernels; of a small limit an eighth."""

GROUP_PART: Final = 32

FREED_AT_LEAST: Final = 16 * MIB
FREED_AT_MOST: Final = 256 * MIB
PRESSURE_PART: Final = 20  # pressure begins a twentieth below the limit, within these two

SHORTEST_PAUSE: Final = 0.001
LONGEST_PAUSE: Final = 0.1
"""Seconds between two looks; with waking up a look takes some 200 µs of one core."""

SMALLEST_RESERVE: Final = 256 * MIB
LARGEST_RESERVE: Final = 2048 * MIB
RESERVED_PART: Final = 20  # one twentieth of the machine, as earlyoom and others keep 5 to 10 %

_UNCAUGHT: Final = frozenset({1, 134})
"""How a program ends that does nothing about a refusal: Python's traceback, C++'s abort."""

Action: TypeAlias = Literal["go on", "terminate", "kill"]
Stage: TypeAlias = Literal["calm", "pressure", "over"]
Origin: TypeAlias = Literal["stated", "default"]


@dataclass(frozen=True, slots=True)
class Offer:
    """What the machine, or the control group that binds, has in all and can still give."""

    total: int
    available: int
    name: str


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit that holds, where it comes from, and what the user must be told of it."""

    size: Size
    origin: Origin
    explanation: str
    warning: str | None = None


def reserve(offer: Offer) -> int:
    """What is left to the rest of the machine where no limit was stated."""
    return min(max(offer.total // RESERVED_PART, SMALLEST_RESERVE), LARGEST_RESERVE)


def choose_limit(stated: Size | None, offer: Offer) -> Limit:
    """The stated limit, or what is offered less a reserve.

    A limit beyond all there is would guard nothing, so it is lowered; one beyond what is free now
    is kept, for others may give back what they hold.
    """
    kept = reserve(offer)
    # Never below half of what is free: on a full machine the reserve would leave nothing.
    free = Size(max(offer.available - kept, offer.available // 2, 1))
    there = f"{offer.name} offers {Size(offer.available)} (measured)"
    if stated is None:
        explanation = f"{there}, less {Size(offer.available) - int(free)} kept in reserve (assumed)"
        return Limit(free, "default", explanation)
    if stated > offer.total:
        return Limit(
            free,
            "default",
            f"--memory {stated} is beyond what is there",
            f"--memory {stated} is more than {offer.name} has: {Size(offer.total)} (measured);"
            f" the guard holds the command to {free} instead",
        )
    warning = None
    if stated > offer.available:
        warning = (
            f"--memory {stated} is more than is free now: {there};"
            " the command may be killed before it reaches its limit"
        )
    return Limit(stated, "stated", "stated with --memory", warning)


def pause(limit: int, held: int) -> float:
    """Seconds until the next look: long far from the limit, a millisecond close to it."""
    soonest = max(limit - held, 0) / FASTEST_GROWTH
    return min(max(soonest, SHORTEST_PAUSE), LONGEST_PAUSE)


def data_limit(data: int, held: int, limit: int) -> int:
    """The RLIMIT_DATA of a process: what it has reserved already, and the room that is left.

    The kernel counts what is reserved, touched or not (thread stacks, an allocator's regions), so
    the limit itself would refuse programs that hold far less. What was reserved earlier is
    forgiven; a request for more than the room left is refused at once, before a byte is touched.
    """
    return data + max(limit - held, 0) + REFUSE_ABOVE


def inside_limit(untouched: int, limit: int) -> int:
    """The RLIMIT_DATA of a process that guards itself; see `data_limit`.

    Above the limit nothing is left: nobody outside would stop what grows on.
    """
    return max(untouched, 0) + limit + REFUSE_INSIDE


def beside_tensors(limit: int, cores: int) -> int:
    """What TensorFlow's tensors must leave to its kernels."""
    return min(limit // BESIDE_PART, BESIDE_TENSORS + BESIDE_A_CORE * cores)


def lifted_limit(data: int, offered: int) -> int:
    """The RLIMIT_DATA while kernels run that crash without scratch memory: what is really there."""
    return data + offered - offered // 10


def beyond(limit: int, held: int, offered: int) -> int:
    """What native code that does not look whether it got memory may have, all in all.

    Where it is refused it crashes. So it may take what is held to twice the limit, if the machine
    has it; a tenth of what it has is left to others.
    """
    return max(min(2 * limit - held, offered - offered // 10), 0)


def pressure_at(limit: int) -> int:
    """What may be held before memory is freed and somebody is asked to save."""
    return limit - min(max(limit // PRESSURE_PART, FREED_AT_LEAST), FREED_AT_MOST)


def stage(limit: int, held: int) -> Stage:
    """How near to its limit a process is: warn and free under pressure, raise above."""
    if held > limit + STOP_ABOVE:
        return "over"
    return "pressure" if held > pressure_at(limit) else "calm"


def group_limit(limit: int) -> int:
    """What a control group of the command's own allows.

    More than the guard itself: the kernel kills there, and counts page tables and files as well.
    """
    return limit + REFUSE_ABOVE + limit // GROUP_PART


def tensorflow_cap(limit: int) -> int:
    """What TensorFlow's CPU allocator may have, so that it refuses before the guard must stop."""
    return max(limit - TENSORFLOW_ITSELF, limit // 2)


def decide(limit: int, held: int, asked_to_end_since: float | None, grace: float) -> Action:
    """What to do, given what is held and for how many seconds the command was asked to end."""
    if asked_to_end_since is None:
        return "terminate" if held > limit + STOP_ABOVE else "go on"
    if held > limit + KILL_ABOVE or asked_to_end_since >= grace:
        return "kill"
    return "go on"


def was_refused(exit_code: int, *, says_so: bool, asked: int | None, peak: int, limit: int) -> bool:
    """Whether the command ended because the guard's limit refused it memory.

    Nobody counts refusals, so this is told from the end: it says that memory was refused, did
    nothing about it, and what it asked for was more than the room it had, or it had little left.
    A program's own exit
    code (3, say) is its own decision and is left alone.
    """
    if not says_so or exit_code not in _UNCAUGHT:
        return False
    # Halves, because the last look lies up to one pause before the end.
    if asked is not None and asked > max(limit - peak, 0) // 2:
        return True
    return peak > limit // 2
