"""What stands before a message: the time, the machine, the container, the logger, the level.

A log reaches us through Docker, journald, CI, Slurm and loggers of many kinds, several of them one
inside the other. Each is taken off here, one after the other, and what is left after each is kept:
a message may look like a prefix itself (`[1]    4242 killed`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_CLOCK: Final = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_DAY: Final = r"(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d[-/.]\d\d[-/.]\d\d(?:\d\d)?)"
_LEVEL: Final = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|SEVERE|FATAL|CRITICAL)"

_TIMES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_DAY},?[T ]{_CLOCK}:? {{1,4}}",
        rf"\[{_DAY},?[T ]{_CLOCK}[^\]]{{0,60}}\]:? ?",
        r"\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?:? {1,4}",
        # syslog and journald, with the month's name in any language
        r"[^\W\d_]{3,5}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,80} (?:\S{1,60}: )?",
        r"\[ {0,8}\d{1,9}\.\d{3,6}\] ",  # dmesg
        r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}\] ",  # dmesg -T
        (
            r"\"?[A-Z][a-z]{2} \d{1,2}, \d{4}, \d{1,2}:\d\d:\d\d ?[AP]M\"? ?[|,] ?"
            r"[A-Z]{4,8} ?[|,] ?\"?"
        ),  # Colab's table of runtime logs
    )
)

_AFTER_TIMES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"std(?:err|out) [FP] ",  # Kubernetes' log files
        r"\d\d[EO][ +]",  # GitLab
        r"(?:[\w.-]{1,60} )?[\w./-]{1,60}\[\d{1,9}\]: ",  # syslog: host, program, process
        r"\{\S{1,80}:\d{1,6}\} ",  # Airflow
        r"\[[\w .:/-]{1,60}\]:? {1,4}",
        r"[\w.<>-]{1,60}:[\w.<>-]{1,60}:\d{1,6} [-|] ",  # loguru's place
        r"(?:[-|] )?[\w.-]{1,60} {0,8}[-|] (?=" + _LEVEL + r"\b)",
        rf"(?:[-|] )?\[?{_LEVEL}\b\]? {{0,8}}(?:[-|:] {{1,4}})?",
        r"(?!\w{0,60}(?:Error|Exception|Exhausted)\b)[A-Z]\w{1,40}: ",  # log4j's class
    )
)
"""What loggers put between the time and the message; without a time these may be the message."""

_NAMES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} {1,8}\d{1,9} {1,8}\d{1,9} [VDIWEFA] [^:]{1,60}: ",  # adb
        r"[VDIWEFA]/[\w.$-]{1,60} {0,20}\( {0,8}\d{1,9}\): ",  # logcat, brief
        r"\[\d{1,6}(?:,\d{1,6})?\]<std(?:err|out)>:",  # mpirun and horovodrun
        r"\[pod/[^\]]{1,200}\] ",  # kubectl logs --prefix
        r"[\w./-]{1,60} {0,20}\| ",  # docker compose
        r"\(\S{1,40} pid=\d{1,9}(?:, ip=[\d.]{1,20})?\) ",  # Ray
        rf"{_LEVEL}:? {{1,8}}(?={_DAY},?[T ]\d\d:)",  # the level before the time
    )
)
"""Times and these are never a part of the message."""

_ORIGINS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\d{1,4}: ",  # srun -l
        r"\[(?:stdout|stderr|rank ?\d{1,4}|\d{1,4}|INFO|WARNING|ERROR|CRITICAL)\]:? ?",
        r"\[repeated \d{1,9}x[^\]]{0,80}\] ",  # Ray
        r"> (?! {0,4}E {1,8})",  # a quotation, not pytest's mark
    )
)

_LEVELS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:E {3}|ERROR:(?:root|tensorflow|absl):|WARNING:tensorflow:|> {1,4}E {1,8})",
        r"(?:CRITICAL|ERROR|WARNING|INFO):\S{0,40}: ?",
        r"##\[error\]",
        r"::error::",
    )
)

_NATIVE: Final = re.compile(
    r"[IWEF](?:\d{4} \d\d:\d\d:\S{1,30} {1,8}\d{1,9})? \S{1,200}\.\w{1,4}:\d{1,6}\] (?=\S)"
)
"""How TensorFlow's native code begins its lines."""

_EMPHASIS: Final = "*`_"
"""How a log is marked where somebody has pasted it: `**Killed**`."""

_ANY: Final = re.compile("|".join(one.pattern for one in (*_TIMES, *_NAMES, *_ORIGINS)))
_ANY_AFTER: Final = re.compile("|".join(one.pattern for one in _AFTER_TIMES))
_ANY_LEVEL: Final = re.compile("|".join(one.pattern for one in _LEVELS))
"""Most lines have no prefix, and most others one: one look says so, where each alone takes long."""

_MOST_ROUNDS: Final = 6


@lru_cache(maxsize=32)  # of one line it is asked many times over, of one before it never again
def origin_free(text: str) -> tuple[str, ...]:
    """The text without time and container, then what is left after each machine and rank."""
    stages = [text]
    after_time = False
    for _ in range(_MOST_ROUNDS):
        before = stages[-1]
        if _ANY.match(before) is None and not (after_time and _ANY_AFTER.match(before)):
            break
        for pattern in _TIMES:
            if _strip(pattern, stages, keep=False):
                after_time = True
        for pattern in _NAMES:
            _strip(pattern, stages, keep=False)
        if after_time:
            for pattern in _AFTER_TIMES:
                _strip(pattern, stages)
        for pattern in _ORIGINS:
            _strip(pattern, stages)
        if stages[-1] == before:
            break
    return tuple(stages)


@lru_cache(maxsize=32)
def stages_of(text: str) -> tuple[str, ...]:
    """The text, then what is left after each prefix; the last has none, and no indent either."""
    stages = _level_free(text)
    for without in (stages[-1].lstrip(), stages[-1].strip().strip(_EMPHASIS)):
        if without and without != stages[-1]:
            stages.append(without)
    _strip(_NATIVE, stages)
    return tuple(stages)


@lru_cache(maxsize=32)
def core_of(text: str) -> str:
    """The text without times, hosts, containers and levels before it; several may be there."""
    return _level_free(text)[-1]


def _level_free(text: str) -> list[str]:
    stages = list(origin_free(text))
    for _ in range(_MOST_ROUNDS):
        if _ANY_LEVEL.match(stages[-1]) is None:
            break
        for pattern in _LEVELS:
            _strip(pattern, stages)
    return stages


def _strip(pattern: re.Pattern[str], stages: list[str], *, keep: bool = True) -> bool:
    """Take a prefix off the last stage, and keep the stage with it where it may be the message."""
    found = pattern.match(stages[-1])
    if found is None or found.end() == len(stages[-1]):
        return False
    rest = stages[-1][found.end() :]
    if keep:
        stages.append(rest)
    else:
        stages[-1] = rest
    return True
