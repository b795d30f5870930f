"""Scripts under `snugly profile`: they run as always and leave a record, whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from snugly.recording.file import read_record

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tensorflow

USES_TENSORFLOW = """
    import tensorflow as tf
    x = tf.ones((256, 256))
    for _ in range(4):
        x = x @ x
    print("peak", tf.config.experimental.get_memory_info("CPU:0")["peak"])
"""


class Run:
    """One script, profiled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "run.snugly"

    def write(self, text: str, name: str = "script.py") -> Path:
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def command(self, *words: str | Path) -> list[str]:
        return [sys.executable, "-m", "snugly", "profile", *map(str, words)]

    def __call__(
        self, text: str, *arguments: str, options: tuple[str, ...] = (), **settings
    ) -> subprocess.CompletedProcess[str]:
        return self.start("-o", self.output, *options, self.write(text), *arguments, **settings)

    def start(self, *words: str | Path, **settings) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
            **settings,
        )

    def record(self):
        return read_record(self.output)


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def test_the_peak_is_the_allocators_to_the_byte_and_every_line_is_known(run):
    done = run(USES_TENSORFLOW)
    assert done.returncode == 0, done.stderr
    record = run.record()
    assert done.stdout.strip() == f"peak {int(record.peak)}"
    assert {tensor.line for tensor in record.tensors if tensor.bytes > 1000} <= {
        "script.py:3",
        "script.py:5",
    }
    assert sum(record.parts.values()) == record.requested
    assert "unknown" not in record.parts
    assert "snugly report" in done.stderr


def test_a_script_has_its_own_arguments_folder_name_and_standard_streams(run):
    run.write("VALUE = 7", "beside.py")
    done = run(
        """
        import sys
        import beside
        print(__name__, __file__.endswith("script.py"), sys.argv[1:], beside.VALUE, input())
        print("to stderr", file=sys.stderr)
        """,
        "--epochs",
        "3",
        "-o",
        "its own",
        input="hello\n",
    )
    assert done.stdout.strip() == "__main__ True ['--epochs', '3', '-o', 'its own'] 7 hello"
    assert "to stderr" in done.stderr
    assert any("did not use TensorFlow" in note for note in run.record().notes)


@pytest.mark.parametrize(
    ("leaving", "code"),
    [
        ("raise SystemExit(3)", 3),
        ("import sys; sys.exit('no good')", 1),
        ("raise SystemExit", 0),
        ("import os; os._exit(9)", 9),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_the_exit_code_is_the_scripts_own(run, leaving, code):
    done = run(leaving)
    assert done.returncode == code
    assert run.record().facts["exit_code"] == code
    if "no good" in leaving:
        assert "no good" in done.stderr


def test_a_script_that_raises_shows_its_own_traceback_and_leaves_a_record(run):
    done = run(USES_TENSORFLOW + "    raise RuntimeError('after the fact')\n")
    assert done.returncode == 1
    assert "RuntimeError: after the fact" in done.stderr
    assert "snugly/recording" not in done.stderr.replace(os.sep, "/")
    assert run.record().peak > 0


def test_a_process_that_is_killed_leaves_what_was_recorded_until_then(run):
    # GIVEN a script that works for a while, beyond the first window, and kills itself
    done = run(
        """
        import os, signal, time
        import tensorflow as tf
        kept = tf.ones((512, 512))
        end = time.time() + 2.5
        while time.time() < end:
            kept = kept @ kept
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    # THEN the exit code is a shell's, and the record has the windows before
    assert done.returncode == 128 + signal.SIGKILL
    record = run.record()
    assert record.peak >= 2 * 512 * 512 * 4
    assert record.windows
    assert any("SIGKILL" in note for note in record.notes)


def test_a_raw_record_is_readable_when_the_command_itself_was_killed(run):
    script = run.write(
        """
        import time
        import tensorflow as tf
        kept = tf.ones((512, 512))
        print("ready", flush=True)
        while True:
            kept = kept @ kept
        """
    )
    child = subprocess.Popen(
        run.command("-o", run.output, script), stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    time.sleep(2.5)  # beyond the first window, which lasts a second
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    record = run.record()
    assert record.windows
    assert record.peak >= 2 * 512 * 512 * 4


def test_a_terminated_script_is_recorded_to_its_end(run):
    done = run(
        USES_TENSORFLOW
        + """
    import os, signal, time
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
    """
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert run.record().facts["complete"]


def test_a_script_that_forks_is_recorded_once(run):
    done = run(
        USES_TENSORFLOW
        + """
    import os
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    print("parent")
    """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("parent\n")
    assert run.record().facts["complete"]


def test_a_module_runs_as_python_does_it(run):
    package = run.folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("import sys; print(__name__, __package__, sys.argv[1:])")
    done = run.start("-o", run.output, "-m", "package.train", "--fast")
    assert done.stdout.strip() == "__main__ package ['--fast']"


def test_the_programs_own_profiler_still_works(run):
    done = run(
        USES_TENSORFLOW
        + """
    import glob, tempfile
    folder = tempfile.mkdtemp()
    with tf.profiler.experimental.Profile(folder):
        x @ x
    print(len(glob.glob(folder + "/**/*.xplane.pb", recursive=True)))
    x = x @ x
    """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "1"
    assert any("profiler of its own" in note for note in run.record().notes)


@pytest.mark.parametrize("mode", ["samples", "full"])
def test_modes(run, mode):
    done = run(USES_TENSORFLOW, options=("--trace", mode))
    assert done.returncode == 0, done.stderr
    record = run.record()
    assert f"peak {int(record.peak)}" in done.stdout
    assert bool(record.timeline.spans) == (mode == "full")
    assert len(record.samples)


@pytest.mark.parametrize(
    ("text", "name"), [("\x7fELF\0\0", "program"), ("echo hello", "run.sh"), ("1 +", "broken.py")]
)
def test_what_is_not_python_is_refused_before_anything_runs(run, text, name):
    script = run.write(text, name)
    done = run.start("-o", run.output, script)
    assert done.returncode == 2
    assert "error[SNG303]" in done.stderr
    assert "hint:" in done.stderr
    assert not run.output.exists()


def test_an_output_that_cannot_be_written_is_refused_before_anything_runs(run):
    script = run.write("print('ran')")
    (run.folder / "file").write_text("")
    for output in (run.folder / "missing" / "run.snugly", run.folder / "file" / "run.snugly"):
        done = run.start("-o", output, script)
        assert done.returncode == 2
        assert "error[SNG304]" in done.stderr
        assert "ran" not in done.stdout


def test_json_is_the_last_line_after_the_scripts_own_output(run):
    done = run("print('its own')", options=("--output-format", "json"))
    first, last = done.stdout.splitlines()
    assert first == "its own"
    said = json.loads(last)
    assert said["schema_version"] == 1
    assert said["record"] == str(run.output)
