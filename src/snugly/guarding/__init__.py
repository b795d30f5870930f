"""Run under a limit: what is allowed, refused, stopped, and how the end is told."""

from snugly.guarding.outcome import STOPPED, Outcome
from snugly.guarding.policy import Limit, Offer, choose_limit
from snugly.guarding.story import Story, tell
from snugly.guarding.supervisor import Settings, supervise

__all__ = [
    "STOPPED",
    "Limit",
    "Offer",
    "Outcome",
    "Settings",
    "Story",
    "choose_limit",
    "supervise",
    "tell",
]
