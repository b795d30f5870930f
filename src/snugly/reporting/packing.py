"""A packing, as data and as a drawing: whether it fits, how high it is, and what is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from snugly.codes import REGISTRY
from snugly.reporting.terminal import make_facts
from snugly.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from snugly.planning.packing import Buffer, Packed


def packing_data(packed: Packed, buffers: Sequence[Buffer]) -> dict[str, Any]:
    """What `snugly pack --output-format json` prints; sizes in bytes."""
    code = code_of(packed)
    return {
        "status": packed.status,
        "code": code,
        "height": packed.height,
        "capacity": packed.capacity,
        "alignment": packed.alignment,
        "live": packed.live,
        "lower_bound": packed.bound,
        "optimal": packed.optimal,
        "positions_tried": packed.tried,
        "buffers": [
            {
                "id": buffer.name,
                "lower": buffer.lower,
                "upper": buffer.upper,
                "size": buffer.size,
                "offset": offset,
            }
            for buffer, offset in zip(buffers, packed.offsets, strict=True)
        ],
    }


def code_of(packed: Packed) -> str | None:
    """The code of what went wrong, if anything."""
    if packed.status == "packed":
        return None
    if packed.status == "undecided":
        return "SNG593"
    return "SNG591" if packed.live > (packed.capacity or 0) else "SNG592"


def draw_packing(packed: Packed, buffers: Sequence[Buffer]) -> RenderableType:
    """The verdict in a sentence, the figures it rests on, and what to do."""
    facts = [
        ("buffers", f"{len(buffers):,}"),
        ("lowest found", f"{_exact(packed.height)} ({_standing(packed)})"),
        ("live at once", f"{_exact(packed.live)} at most"),
        ("proven", f"no packing is lower than {_exact(packed.bound)}"),
    ]
    if packed.alignment > 1:
        facts.append(("alignment", f"{packed.alignment:,} B"))
    code = code_of(packed)
    hint = [] if code is None else [Text(f"\nhint: {REGISTRY[code].remedy}")]
    return Group(Text(_verdict(packed), style="bold"), make_facts(facts), *hint)


def _verdict(packed: Packed) -> str:
    code = code_of(packed)
    if packed.capacity is None:
        return f"packed: {_exact(packed.height)}"
    capacity = _exact(packed.capacity)
    if code is None:
        return f"fits: {_exact(packed.height)} of {capacity}"
    if code == "SNG591":
        return (
            f"does not fit[{code}]: {_exact(packed.live)} are live at once;"
            f" the capacity is {capacity}"
        )
    if code == "SNG592":
        return f"does not fit[{code}]: it is proven that no packing fits {capacity}"
    return (
        f"undecided[{code}]: no packing within {capacity} was found;"
        f" the lowest found needs {_exact(packed.height)}"
    )


def _standing(packed: Packed) -> str:
    if packed.optimal:
        return "proven to be the lowest"
    above = packed.height - packed.bound
    return f"{_exact(above)} above what is proven"


def _exact(count: int) -> str:
    """Bytes to the last one, since that is what a capacity is compared with."""
    size = Size(count)
    return f"{size:,} B" if str(size).endswith(" B") else f"{size:,} B ({size})"
