"""Logs, exit codes and exceptions → findings: what really happened, and whether it was memory."""

from snugly.explaining.explain import explain

__all__ = ["explain"]
