"""`snugly run` around commands that really exhaust memory, crash, hang on, or shout.

Every child is bounded by the guard itself and, should that fail, by a hard RLIMIT_AS of its own, so
the machine is never at risk.
"""

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

THREADS = """
import threading
b = []
def f():
    while True: b.append(bytearray(1 << 20))
for _ in range(4): threading.Thread(target=f).start()
"""
GUARD = (sys.executable, "-m", "snugly", "run")
AT_MOST = 16 << 30


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (AT_MOST, AT_MOST))


def run(*words, memory="400MiB", options=(), **settings):
    limit = () if memory is None else ("--memory", memory)
    return subprocess.run(
        [*GUARD, *limit, *options, "--", *words],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=bounded,
        check=False,
        **settings,
    )


def python(program, **settings):
    return run(sys.executable, "-c", program, **settings)


def start(*words, memory="400MiB"):
    return subprocess.Popen(
        [*GUARD, "--memory", memory, "--", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("code", [0, 1, 3, 7, 255])
def test_the_commands_exit_code_is_its_own(code):
    done = python(f"print('out'); raise SystemExit({code})")
    assert (done.returncode, done.stdout) == (code, "out\n")
    assert "Traceback" not in done.stderr


def test_a_good_end_says_nothing():
    assert run("true").stderr == ""


@pytest.mark.parametrize(
    "ramp",
    [
        "b = []\nwhile True: b.append(bytearray(1 << 24))",
        "b = []\nwhile True: b.append('x' * 1000 + str(len(b)))",
        "import numpy as np\nb = []\nwhile True: b.append(np.ones(1 << 18))",
        "import mmap\nm = mmap.mmap(-1, 2 << 30)\nfor i in range(0, 2 << 30, 4096): m[i] = 1",
        THREADS,
    ],
    ids=["bytearrays", "strings", "numpy", "shared memory", "threads"],
)
def test_a_ramp_is_stopped_at_the_limit_with_its_line(ramp, tmp_path):
    # WHEN a program grows without end THEN it ends with 75, near its limit, and its line is told
    report = tmp_path / "run.json"
    done = python(ramp, options=("--report", str(report)))
    assert done.returncode == 75
    assert "<string>:" in done.stderr
    data = json.loads(report.read_text())
    # 64 MiB: on a machine with other work the guard may get the processor late.
    assert 300 << 20 < data["peak"] < (400 + 64) << 20
    assert data["schema_version"] == 1
    assert data["samples"]


def test_one_huge_request_is_refused_before_a_byte_is_touched(tmp_path):
    report = tmp_path / "run.json"
    done = python("import numpy as np\nnp.ones(1 << 28)", options=("--report", str(report)))
    assert done.returncode == 75
    assert "SNG601" in done.stderr
    assert "<string>:2" in done.stderr
    assert json.loads(report.read_text())["peak"] < 100 << 20


def test_a_refusal_can_be_caught_and_the_command_goes_on():
    done = python(
        "try:\n bytearray(2 << 30)\nexcept MemoryError:\n print('refused')\nprint(sum(range(10)))"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused\n45\n", "")


def test_an_error_that_only_looks_like_a_refusal_keeps_its_code():
    assert python("raise MemoryError('mine')").returncode == 1


def test_watching_alone_refuses_nothing_and_still_stops():
    done = python("x = bytearray(2 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1",
                  options=("--no-refuse",))  # fmt: skip
    assert done.returncode == 75
    assert "SNG602" in done.stderr


def test_processes_are_counted_together():
    # GIVEN four processes, each of them below the limit
    done = python(
        "import os, time\n"
        "for _ in range(3):\n  if not os.fork(): break\n"
        "x = bytearray(b'1') * (150 << 20)\ntime.sleep(30)"
    )
    assert done.returncode == 75
    assert "SNG602" in done.stderr


def test_forked_processes_that_share_their_memory_are_let_be():
    done = python(
        "import os, time\nx = bytearray(b'1') * (200 << 20)\n"
        "children = [os.fork() for _ in range(2)]\ntime.sleep(1)\nprint('well', flush=True)"
    )
    assert (done.returncode, "well" in done.stdout) == (0, True)


def test_who_ignores_the_request_to_end_is_killed():
    done = python(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGABRT, signal.SIG_IGN)\nb = []\n"
        "while True:\n  b.append(bytearray(1 << 20)); time.sleep(0.001)",
        options=("--grace", "1"),
    )
    assert done.returncode == 75
    assert "SIGKILL" in done.stderr


def test_a_handler_for_sigterm_may_save_within_the_grace_period():
    done = python(
        "import signal, sys\n"
        "def save(*_):\n  b.clear(); print('saved', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\nb = []\nwhile True: b.append(bytearray(1 << 18))"
    )
    assert (done.returncode, done.stdout) == (75, "saved\n")


@pytest.mark.parametrize(
    ("program", "code", "name"),
    [
        ("import ctypes; ctypes.string_at(0)", 139, "SIGSEGV"),
        ("import os; os.abort()", 134, "SIGABRT"),
        ("import os; os.kill(os.getpid(), 9)", 137, "SIGKILL"),
    ],
)
def test_a_signals_end_is_told_as_shells_do(program, code, name):
    done = python(program)
    assert done.returncode == code
    assert f"was ended by {name}" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_pass_to_the_command(number):
    guard = start(
        sys.executable, "-c",
        f"import signal, sys, time\nsignal.signal({int(number)}, lambda *_: sys.exit(9))\n"
        "print('ready', flush=True)\ntime.sleep(60)",
    )  # fmt: skip
    assert guard.stdout.readline() == "ready\n"
    guard.send_signal(number)
    guard.communicate(timeout=30)
    assert guard.returncode == 9


@pytest.mark.parametrize("code", [9, 11, 6])
def test_a_small_exit_code_is_not_taken_for_a_signal(code):
    done = python(f"raise SystemExit({code})")
    assert done.returncode == code
    assert "the cause is unknown" in done.stderr


def test_closed_standard_files_do_no_harm():
    words = " ".join([*GUARD, "--", "sh", "-c", "'exit 6'"])
    assert os.waitstatus_to_exitcode(os.system(f"{words} <&- >&- 2>&-")) == 6  # noqa: S605


def test_a_parent_that_ignores_its_childrens_ends_does_not_lose_the_exit_code():
    done = subprocess.run(
        [*GUARD, "--", "sh", "-c", "exit 8"],
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 8


def test_a_slow_reader_of_stderr_loses_nothing():
    guard = start(sys.executable, "-c", "import sys; sys.stderr.write('x' * 300_000 + 'END')")
    time.sleep(2)
    assert guard.communicate(timeout=30)[1].endswith("END")


def test_ctrl_c_in_a_terminal_reaches_the_command_once():
    program = (
        "import signal, time\nseen = []\nsignal.signal(2, lambda *_: seen.append(1))\n"
        "print('ready', flush=True)\ntime.sleep(1)\nraise SystemExit(20 + len(seen))"
    )
    process, terminal = pty.fork()
    if not process:
        os.execv(sys.executable, [*GUARD, "--", sys.executable, "-c", program])  # noqa: S606
    output = b""
    while b"ready" not in output:
        output += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    code = None
    while code is None:
        try:
            os.read(terminal, 1000)
        except OSError:  # the other side is closed
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.close(terminal)
    assert code == 21


def test_who_kills_the_command_from_outside_is_told():
    guard = start("sh", "-c", "echo $$; exec sleep 60")
    os.kill(int(guard.stdout.readline()), signal.SIGKILL)
    _, errors = guard.communicate(timeout=30)
    assert guard.returncode == 137
    assert "was ended by SIGKILL" in errors


def test_the_command_does_not_outlive_a_guard_that_is_killed():
    guard = start("sh", "-c", "echo $$; exec sleep 60")
    command = int(guard.stdout.readline())
    guard.kill()
    guard.communicate(timeout=30)
    for _ in range(100):
        if not Path(f"/proc/{command}").exists():
            return
        time.sleep(0.1)
    pytest.fail("the command still runs")


def test_children_that_outlive_the_command_are_named_and_not_waited_for():
    done = run("sh", "-c", "(setsid sleep 20 >/dev/null 2>&1 & echo $!); exit 4")
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 4
    assert "1 process(es) outlive the command" in done.stderr
    assert "sleep" in done.stderr


def test_100_megabytes_on_stderr_pass_unchanged_and_stdout_is_untouched():
    done = python(
        "import sys\nfor i in range(100): sys.stderr.write('x' * 999_999 + '\\n')\nprint('out')"
    )
    assert (done.returncode, done.stdout, len(done.stderr)) == (0, "out\n", 100_000_000)


def test_stderr_is_passed_on_at_once():
    guard = start("sh", "-c", "printf half >&2; read x")
    assert os.read(guard.stderr.fileno(), 100) == b"half"
    guard.kill()
    guard.communicate(timeout=30)


def test_on_a_terminal_the_command_sees_a_terminal():
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*GUARD, "--", sys.executable, "-c", "import sys; sys.exit(5 * sys.stderr.isatty())"],
        stderr=theirs,
        check=False,
        timeout=60,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 5


def test_stdin_reaches_the_command():
    assert run("cat", input="hello").stdout == "hello"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["no-such-command-at-all"], 127, "there is no command"),
        (["./no/such/file"], 127, "there is no command"),
        (["/"], 126, "it is a folder"),
        ([__file__], 126, "cannot run"),
    ],
)
def test_what_cannot_be_started_is_told_with_a_hint(words, code, message):
    done = run(*words)
    assert done.returncode == code
    assert message in done.stderr
    assert "hint: " in done.stderr


def test_a_missing_interpreter_is_told(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    done = run(str(script))
    assert done.returncode == 126
    assert "its interpreter is missing" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--memory", "4 bananas", "--", "true"],
        ["--memory", "0", "--", "true"],
        ["--grace", "-1", "--", "true"],
        ["--report", "/no/such/folder/run.json", "--", "true"],
        ["--mermory", "4GiB", "--", "true"],
        ["--gpu-memory", "4 bananas", "--", "true"],
        ["--gpu-memory", "10", "--", "true"],
        ["--group", "maybe", "--", "true"],
        ["--", ""],
    ],
)
def test_bad_input_gives_2_and_a_hint(words):
    done = subprocess.run([*GUARD, *words], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_limit_above_what_is_there_is_warned_of_with_the_number():
    done = run("true", memory="900TiB")
    assert done.returncode == 0
    assert "warning[SNG604]: --memory 900 TiB is more than" in done.stderr
    assert "(measured)" in done.stderr


def test_the_report_names_the_limits_that_held(tmp_path):
    # GIVEN no control group of its own THEN the others are named, the gentlest first
    for options, limits in (
        ((), ["TensorFlow's allocators", "RLIMIT_DATA", "the guard"]),
        (("--no-refuse",), ["TensorFlow's allocators", "the guard"]),
    ):
        report = tmp_path / "run.json"
        done = run("true", options=("--group", "never", "--report", str(report), *options))
        assert done.returncode == 0
        assert json.loads(report.read_text())["held_by"] == limits


def test_what_follows_the_dashes_belongs_to_the_command():
    done = run(sys.executable, "-c", "import sys; print(sys.argv[1:])", "--", "--memory", "1")
    assert done.stdout == "['--', '--memory', '1']\n"


@pytest.mark.tensorflow
def test_a_tensor_that_is_too_large_ends_with_its_line_and_its_size(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import tensorflow as tf\nx = tf.zeros([60000, 60000])\n")
    done = run(sys.executable, str(script), memory="1GiB")
    assert done.returncode == 75
    assert f"{script}:2" in done.stderr
    assert "float[60000,60000], 13.4 GiB" in done.stderr


@pytest.mark.tensorflow
def test_a_crash_inside_a_convolution_is_told_with_its_line(tmp_path):
    # TensorFlow 2.21's oneDNN convolution crashes where older ones and other builds raise.
    script = tmp_path / "train.py"
    script.write_text(
        "import tensorflow as tf\nx = tf.ones([64, 256, 256, 3])\n"
        "y = tf.nn.conv2d(x, tf.ones([3, 3, 3, 64]), 1, 'SAME')\n"
    )
    done = run(sys.executable, str(script), memory="1GiB")
    assert done.returncode in {75, 139}
    assert f"{script}:3" in done.stderr
    assert ("SNG901" if done.returncode == 139 else "SNG601") in done.stderr
