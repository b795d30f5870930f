"""Which channels matter least: groups of those that go together, in the order of their weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from snugly.training.compression.tracing import Anatomy

CRITERIA: Final = ("l1", "l2", "batch_norm")
"""l1, l2: the norm of the weights that make a channel (Li et al., 2017, arXiv:1608.08710).
batch_norm: the scale that batch normalisation gives it (Liu et al., 2017, arXiv:1708.06519)."""


@dataclass(frozen=True, slots=True)
class Group:
    """Channels that several layers have in common, or one layer alone, and how many are kept."""

    layers: tuple[str, ...]
    """The layers that make them."""
    channels: int
    kept: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The channels that stay, and the groups they were chosen from."""

    groups: tuple[Group, ...]
    removed: frozenset[int]
    """By the channel that stands for each set."""

    def touches(self, roots: Any) -> bool:
        """Whether any of these sets goes."""
        return not self.removed.isdisjoint(int(root) for root in roots)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The removable channels of a model in groups, the most important first in each."""

    groups: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]

    def choose(self, keep: float) -> Choice:
        """Keep so large a share of every group, rounded up: never less than one channel."""
        groups, removed = [], set()
        for layers, ranked in self.groups:
            # The small number undoes what 0.7 · 10 > 7 does to rounding.
            kept = min(len(ranked), max(1, math.ceil(keep * len(ranked) - 1e-9)))
            groups.append(Group(layers, len(ranked), kept))
            removed.update(ranked[kept:])
        return Choice(tuple(groups), frozenset(removed))


def check_criterion(criterion: str) -> None:
    """Refuse a criterion that does not exist."""
    if criterion not in CRITERIA:
        raise InputError(
            f"channels cannot be ranked by {criterion!r:.40}",
            code="SNG530",
            hint=suggest(str(criterion), CRITERIA) or f"give one of {', '.join(CRITERIA)}",
        )


def ranking_of(found: Anatomy, criterion: str) -> Ranking:
    """The removable channels in groups that the same layers make, ranked by their weights."""
    check_criterion(criterion)
    scores = _scores(found, criterion)
    # By id: layers of models inside may have the same names.
    makers: dict[int, dict[int, None]] = {}
    for key, made in found.made.items():
        roots = found.sets.roots(made.channels)
        for root, removable in zip(roots, found.sets.removable(made.channels), strict=True):
            if removable:
                makers.setdefault(int(root), {})[key] = None
    groups: dict[tuple[int, ...], list[int]] = {}
    for root, layers in makers.items():
        groups.setdefault(tuple(layers), []).append(root)
    ranked = [
        (
            tuple(found.made[key].layer.name for key in layers),
            tuple(sorted(roots, key=lambda root: (-scores[root], root))),
        )
        for layers, roots in groups.items()
        if len(roots) > 1
    ]
    return Ranking(tuple(ranked))


def _scores(found: Anatomy, criterion: str) -> dict[int, float]:
    """How much the weights of each set of channels come to.

    Layers that have channels in common are weighed alike: each by its own mean.
    """
    scores: dict[int, float] = {}
    scaled = _of_scales(found) if criterion == "batch_norm" else {}
    norm = _l2 if criterion == "l2" else _l1
    for made in found.made.values():
        kernel = _array(made.kernel)
        other = tuple(axis for axis in range(kernel.ndim) if axis != made.axis)
        _add(found, scores, made.channels, norm(kernel, other))
    # A channel without batch normalisation, where that decides, keeps its norm's place: groups are
    # ranked apart, and the channels of one are normalised alike or not at all.
    if scaled:
        scores = {root: scaled.get(root, score) for root, score in scores.items()}
    return scores


def _of_scales(found: Anatomy) -> dict[int, float]:
    scores: dict[int, float] = {}
    for scale, channels in found.scales:
        _add(found, scores, channels, abs(_array(scale)))
    return scores


def _add(found: Anatomy, scores: dict[int, float], channels: Any, norms: np.ndarray) -> None:
    mean = float(norms.mean()) or 1.0
    for root, value in zip(found.sets.roots(channels), norms, strict=True):
        scores[int(root)] = scores.get(int(root), 0.0) + float(value) / mean


def _array(variable: Any) -> np.ndarray:
    import numpy as np

    return np.asarray(variable.numpy(), dtype=np.float64)


def _l1(kernel: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    return abs(kernel).sum(axis=tuple(axes))


def _l2(kernel: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    import numpy as np

    return np.sqrt((kernel**2).sum(axis=tuple(axes)))
