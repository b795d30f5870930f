"""Exit codes: what they stand for, and where a log mentions one."""

import pytest

from snugly.codes import REGISTRY
from snugly.explaining.exit_codes import end_of, mentioned
from snugly.explaining.lines import Line


@pytest.mark.parametrize(
    ("codes", "cause"),
    [
        ((137, -9, 247, 9), "SNG724"),
        ((139, -11, 245, 11, -1073741819, 3221225477), "SNG793"),
        ((134, -6, 250, 6, -1073740791), "SNG794"),
        ((135, -7), "SNG795"),
        ((132, -4), "SNG774"),
        ((143, -15, 130, -2), "SNG796"),
        ((127, 126), "SNG798"),
        ((124,), "SNG743"),
        ((75,), "SNG601"),
        ((-1073741801,), "SNG732"),
    ],
)
def test_a_code_stands_for_how_a_process_ended(codes, cause):
    for code in codes:
        assert end_of(code).code == cause
        assert cause in REGISTRY


@pytest.mark.parametrize("code", [0, 1, 2, 3, 42, 255, 10**9, -1])
def test_a_programs_own_code_says_nothing(code):
    assert end_of(code) is None


def test_killed_is_never_certain_and_a_crash_is_not_memory():
    assert 0.4 <= end_of(137).confidence < 0.7
    assert end_of(9).confidence < end_of(137).confidence
    assert end_of(137).is_memory
    assert not end_of(139).is_memory


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", 137),
        ("docker_trainer_1 exited with code 137", 137),
        ("##[error]Process completed with exit code 139.", 139),
        ('"ExitCode": 137,', 137),
        ("exitCode: 137", 137),
        ("Exception during training: Return Code: 132", 132),
        ("      Exit Code:    137", 137),
        ("returned non-zero exit status 134.", 134),
        ("failed (exitcode: -9) local_rank: 0", -9),
        ("died with <Signals.SIGKILL: 9>.", -9),
        ("Process finished with exit code -1073741819 (0xC0000005)", -1073741819),
    ],
)
def test_a_mention_is_found(text, code):
    assert mentioned([Line(1, "before"), Line(2, text), Line(3, "after")])[0] == code


@pytest.mark.parametrize(
    "text",
    ["exited with code 1", "exit code 0", "step 137 of 139", "exit code 137.5", "exit code 9"],
)
def test_what_says_nothing_is_passed_over(text):
    assert mentioned([Line(1, text)]) is None


def test_source_is_not_a_mention():
    assert mentioned([Line(1, "sys.exit(exit code 137)", is_source=True)]) is None
