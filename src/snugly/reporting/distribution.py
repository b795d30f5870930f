"""Who needs how much when training is spread: a table under the prediction of one replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from snugly.reporting.terminal import make_facts, make_table
from snugly.units import format_range, format_together

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snugly.predicting.distribution import Distribution


def distribution_of(prediction: Any) -> Distribution | None:
    """What a prediction says of the other processes; None where there are none."""
    return getattr(prediction, "distribution", None)


def draw_distribution(distribution: Distribution) -> RenderableType:
    """A line for each kind of process, and what the exchange of gradients takes."""
    table = make_table("under the strategy", "", "peak", "range, predicted", right=("peak",))
    strategy = distribution.strategy
    rows = [
        ("replica", _count(strategy.replicas, "device"), distribution.replica),
        ("worker", _count(strategy.workers, "process", "processes"), distribution.worker),
        *(
            (f"parameter server {index}", "1 process", server)
            for index, server in enumerate(distribution.parameter_servers)
        ),
    ]
    for name, count, share in rows:
        table.add_row(name, count, str(share.peak), format_range(share.low, share.high))
    facts: list[tuple[str, str | Text]] = [
        ("strategy", str(strategy)),
        ("batch", _batch_sentence(distribution)),
    ]
    if any(distribution.exchange.values()):
        facts.append(("exchange", _exchange_sentence(distribution)))
    return Group(make_facts(facts), Text(""), table)


def _batch_sentence(distribution: Distribution) -> str:
    total, share = distribution.batch_size, distribution.batch_size_per_replica
    if distribution.strategy.kind == "parameter-server":
        return f"{total} in each step of a worker"
    if distribution.is_even:
        return f"{total} in all, {share} on each replica"
    return f"{total} in all: {share} on some replicas, which is predicted, {share - 1} on others"


def _exchange_sentence(distribution: Distribution) -> str:
    """`packed 40 · unpacked 40 · received 20 MiB (predicted)`."""
    sizes = {name: size for name, size in distribution.exchange.items() if size}
    numbers, unit = format_together(list(sizes.values()))
    shown = " · ".join(f"{name} {number}" for name, number in zip(sizes, numbers, strict=True))
    return f"{shown} {unit} (predicted)"


def _count(number: int, one: str, several: str | None = None) -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"
