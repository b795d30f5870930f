"""The story of a command's end: what happened, how sure, where, and what to change.

Joins what the guard saw with findings about the command's last words, which the caller brings.
Pure: data in, data out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.codes import REGISTRY
from snugly.guarding.policy import KILL_ABOVE
from snugly.guarding.refusal import crashed_in_convolution, line_in, tensor_in
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.findings import Finding
    from snugly.guarding.outcome import Outcome

_KILL: Final = 137
_CRASH: Final = 139
_FEW_LOOKS: Final = 5
_NEAR: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One paragraph, in parts."""

    code: str | None
    happened: str
    sure: str | None = None
    why: str | None = None
    line: str | None = None
    tensor: str | None = None
    hint: str | None = None
    notes: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "code": self.code,
            "happened": self.happened,
            "sure": self.sure,
            "why": self.why,
            "line": self.line,
            "tensor": self.tensor,
            "hint": self.hint,
            "notes": list(self.notes),
        }


def tell(outcome: Outcome, findings: Sequence[Finding] = ()) -> Story | None:
    """The story, or None where the command ended well and nothing else is worth saying."""
    notes = _notes(outcome)
    text = outcome.tail.decode("utf-8", "replace")
    places = {"line": line_in(text), "tensor": tensor_in(text)}
    if outcome.stopped:
        return _stopped(outcome, notes, places)
    if outcome.refused:
        return _refused(outcome, notes, places)
    if outcome.own_code == 0:
        return Story(code=None, happened="the command ended well", notes=notes) if notes else None
    if outcome.own_code == _KILL and outcome.oom_kills:
        return _oom_killed(outcome, notes, places)
    if outcome.own_code == _CRASH and outcome.refusing and crashed_in_convolution(text):
        return _crashed(outcome, notes, places)
    return _ended(outcome, findings, notes, places)


def _stopped(outcome: Outcome, notes: tuple[str, ...], places: dict[str, str | None]) -> Story:
    how = "SIGKILL, for asking was not enough" if outcome.killed else "a request to end"
    return Story(
        code="SNG602",
        happened=f"the guard stopped the command after {outcome.seconds:.1f} s by {how}: it held"
        f" {outcome.peak} (measured), more than its limit of {_limit(outcome)}",
        sure="certain: the guard did it",
        hint=f"{REGISTRY['SNG602'].remedy} {_raise(outcome)}",
        notes=notes,
        **places,
    )


def _refused(outcome: Outcome, notes: tuple[str, ...], places: dict[str, str | None]) -> Story:
    return Story(
        code="SNG601",
        happened=f"the command ended after {outcome.seconds:.1f} s because memory was refused it:"
        f" it held up to {outcome.peak} (measured) of {_limit(outcome)} and asked for more than was"
        " left",
        sure="nearly certain: it says that memory was refused, and had no room left",
        hint=f"catch the error and go on, or make the work smaller. {_raise(outcome)}",
        notes=notes,
        **places,
    )


def _oom_killed(outcome: Outcome, notes: tuple[str, ...], places: dict[str, str | None]) -> Story:
    return Story(
        code="SNG724",
        happened=f"the kernel's OOM killer ended the command after {outcome.seconds:.1f} s; it held"
        f" up to {outcome.peak} (measured) of {_limit(outcome)}",
        sure="nearly certain: it ended by SIGKILL, and the control group counts"
        f" {outcome.oom_kills} OOM kill(s) meanwhile (measured)",
        why="others on this machine, or in this control group, took the memory that was left",
        hint="run again with a smaller --memory, so that the guard refuses before the kernel kills",
        notes=notes,
        **places,
    )


def _crashed(outcome: Outcome, notes: tuple[str, ...], places: dict[str, str | None]) -> Story:
    entry = REGISTRY["SNG901"]
    return Story(
        code="SNG901",
        happened=f"{_how_it_ended(outcome)}, inside a convolution of TensorFlow",
        sure="likely: such a convolution crashes where memory is refused it, and a limit was set",
        why=entry.meaning,
        hint=f"{entry.remedy} {_raise(outcome)}",
        notes=notes,
        **places,
    )


def _how_it_ended(outcome: Outcome) -> str:
    by = outcome.signal_name
    ended = f"was ended by {by}" if by else f"ended with exit code {outcome.own_code}"
    looks = f" at {outcome.looks} looks" if outcome.looks < _FEW_LOOKS else ""
    return (
        f"the command {ended} after {outcome.seconds:.1f} s; the most it held was"
        f" {outcome.peak} (measured{looks}) of {_limit(outcome)}"
    )


def _ended(
    outcome: Outcome,
    findings: Sequence[Finding],
    notes: tuple[str, ...],
    places: dict[str, str | None],
) -> Story:
    by, happened = outcome.signal_name, _how_it_ended(outcome)
    if by in outcome.passed_on:
        return Story(code=None, happened=f"{happened}; {by} was passed on to it", notes=notes)
    if outcome.own_code == _KILL and outcome.oom_kills == 0:
        return Story(
            code=None,
            happened=happened,
            sure="nearly certain: somebody sent it SIGKILL; the kernel's OOM killer did not, its"
            " count in this control group did not rise (measured)",
            notes=notes,
        )
    if not findings:
        return Story(
            code=None, happened=happened, sure="the cause is unknown", notes=notes, **places
        )
    first = findings[0]
    memory = "memory" if first.is_memory else "not memory"
    near = outcome.peak > outcome.limit.size.times(_NEAR)
    if first.is_memory and not near and outcome.own_code == _KILL:
        notes = ("it was far from its limit when it was killed: somebody else may have", *notes)
    return Story(
        code=first.code,
        happened=happened,
        sure=f"{first.confidence:.0%} (assumed): {first.title} ({memory})",
        why=first.cause,
        hint=first.remedy,
        notes=notes,
        **places,
    )


def _limit(outcome: Outcome) -> str:
    return f"{outcome.limit.size} ({outcome.limit.explanation})"


def _raise(outcome: Outcome) -> str:
    return (
        "`snugly profile` shows what holds it; more is allowed with"
        f" `--memory {Size(int(outcome.limit.size * 2)).rounded_up_to(1 << 20)}`".replace(
            " MiB", "MiB"
        )
        .replace(" GiB", "GiB")
        .replace(" TiB", "TiB")
    )


def _notes(outcome: Outcome) -> tuple[str, ...]:
    notes: list[str] = []
    if outcome.outliving:
        shown = ", ".join(f"{pid} {name}".strip() for pid, name in outcome.outliving[:5])
        more = f" and {len(outcome.outliving) - 5} more" if len(outcome.outliving) > 5 else ""  # noqa: PLR2004 - as shown
        notes.append(
            f"{len(outcome.outliving)} process(es) outlive the command and are no longer guarded:"
            f" {shown}{more}"
        )
    if outcome.oom_kills:
        notes.append(
            f"the kernel's OOM killer struck {outcome.oom_kills} time(s) meanwhile in this control"
            " group (measured)"
        )
    over = outcome.peak - outcome.limit.size
    if over > 4 * KILL_ABOVE:
        notes.append(f"the limit was exceeded by {over} (measured) before the guard could act")
    return tuple(notes)
