"""Rules for all tests: in CI, a skipped test is a failed one, unless the machine is the reason."""

import os
import signal

import pytest

# TensorFlow turns oneDNN on by itself on some processors only (AVX-512 VNNI and newer). With it,
# steps need other memory and TensorFlow keeps figures of it, so the tests would prove one thing
# here and another there. Those that are about processors without it say so themselves.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

# A job that a script puts into the background ignores Ctrl-C, and so does all that it starts: tests
# that press it would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ALLOWED_IN_CI = ("needs a GPU", "needs shared data", "needs a browser")
"""A skip whose reason begins with one of these is not CI's to run."""


def is_allowed(reason: str) -> bool:
    return reason.removeprefix("Skipped: ").startswith(ALLOWED_IN_CI)


def forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn the report of a skip into a failure, where CI should have run the test."""
    expected_failure = hasattr(report, "wasxfail")
    if not report.skipped or expected_failure or not isinstance(report.longrepr, tuple):
        return
    path, line, reason = report.longrepr
    if not is_allowed(reason):
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: skipped in CI ({reason}), but CI is meant to run it"


def in_ci() -> bool:
    return os.environ.get("CI") == "true"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):  # noqa: ARG001 - the names are pytest's
    report = yield
    if in_ci():
        forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):  # noqa: ARG001 - the name is pytest's
    report = yield
    if in_ci():
        forbid_skip(report)
    return report
